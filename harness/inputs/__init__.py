"""Prepared inputs: tokens, target spans, order and the one identity over all of it."""

from harness.inputs.prepare import prepare_inputs
from harness.inputs.prepared import PreparedInputs

__all__ = ["PreparedInputs", "prepare_inputs"]
