"""The operator's side of Harness: plan, stages, journal, hosts, store, evidence, report."""

__version__ = "0.1.0"
