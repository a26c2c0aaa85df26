"""Measuring: from receipts and the trainer's files to numbers. Nothing here decides or judges."""

from harness.measuring.measurements import Measurements, ModelMeasured, read_measurements
from harness.measuring.results import results

__all__ = ["Measurements", "ModelMeasured", "read_measurements", "results"]
