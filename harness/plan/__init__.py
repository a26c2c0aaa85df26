"""The plan: the frozen question. One file a subject; `Plan` in `plan.py` holds them together."""

from harness.plan.load import LoadedPlan, load_plan
from harness.plan.plan import Plan

__all__ = ["LoadedPlan", "Plan", "load_plan"]
