"""What the study may cost and how long it may take."""

from __future__ import annotations

from harness.plan.kinds import Count, CountOrZero, Money, NotNegative
from harness.strict import Model


class Budget(Model):
    """Nothing is launched unless the worst case fits `ceiling_usd` (invariant 1)."""

    ceiling_usd: Money
    allowance_usd: Money
    """Added to the bound for what has no line of its own."""
    deadline_s: Count
    """From admission; absolute and never moved."""
    traffic_gb_per_host: NotNegative
    """Cap on transmitted gigabytes (10^9 bytes) of one host over its life."""
    retention_days: CountOrZero
    """How long artifacts stay in the store; 0: until removed by hand."""
    attempts: Count
    """Fleet launches that this plan may make, failed ones included."""
