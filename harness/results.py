"""results.json: every declared measurement and decision, with its inputs' hashes."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from harness.plan.kinds import CountOrZero, Money, Sha256
from harness.receipts import Cause, Decided, Distance, Timers
from harness.strict import Model


class Tally(Model):
    """Right of all."""

    correct: CountOrZero
    cases: CountOrZero


class ModelResult(Model):
    """One model's scores on the test cases; 'reference' is the untrained seed."""

    name: str
    parameter_root: Sha256
    overall: Tally
    families: dict[str, Tally]
    wordings: dict[str, Tally]
    """By wording number, as text."""
    held_out: Tally
    valid_json: Tally
    retention: dict[str, float]
    """Mean unweighted loss in nats, by probe set."""
    evaluation_seconds: float


class Flips(Model):
    """Test cases on which two models differ in correctness."""

    candidate: str
    reference: str
    gained: tuple[str, ...]
    lost: tuple[str, ...]


class FloorResult(Model):
    """One candidate scored twice, in batches of two sizes: what rounding alone changes."""

    candidate: str
    batch: CountOrZero
    """Prompts at once, the second time."""
    cases: CountOrZero
    gained: tuple[str, ...]
    """Right only the second time."""
    lost: tuple[str, ...]
    """Right only the first time."""


class ArmResult(Model):
    """One arm's execution. Timers are the slowest rank's; `wall_seconds` is the process group's."""

    name: str
    workers: CountOrZero
    exchange: str
    corpus: str
    microbatch: CountOrZero
    attempts: CountOrZero
    updates: CountOrZero
    timers: Timers
    wall_seconds: float
    allocated_seconds: float
    """Summed over ranks, whole process."""
    tokens: CountOrZero
    targets: CountOrZero
    weighted_targets: float
    tokens_per_s: float
    peak_memory_bytes: CountOrZero
    peak_memory_of: str
    sent_bytes: CountOrZero
    """Whole-host counters, summed over hosts; on one computer the loopback's, counted once."""
    received_bytes: CountOrZero
    exchange_sent_bytes: CountOrZero
    """Counted by the exchange, summed over ranks."""
    first_loss: float
    final_loss: float
    parameter_root: Sha256
    ranks_agree: bool


class Predicted(Model):
    """A prediction of `harness check` beside what was observed."""

    what: str
    source: str
    predicted_s: float | None = None
    observed_s: float | None = None


class PhaseResult(Model):
    """One serving phase in figures, counted from the client's events and the replicas' records."""

    name: str
    replicas: CountOrZero
    fault: str
    loop: Literal["closed", "open"]
    concurrency: CountOrZero | None = None
    """Closed loop: requests that are out at once."""
    arrivals_per_s: float | None = None
    """Open loop: requests that come in a second, on average."""
    outcome: Literal["passed", "failed", "cut"]
    """cut: it had to leave before its end. Its figures are of what was answered by then, and decide
    nothing."""
    why: str
    requests: CountOrZero
    answered: CountOrZero
    first_failures: CountOrZero
    """Requests whose first attempt failed."""
    retries_answered: CountOrZero
    """Of these, the ones that a later attempt answered under the same identity."""
    failures: dict[str, CountOrZero]
    """Failed attempts by outcome."""
    duplicates: CountOrZero
    """Executions beyond the first of each request."""
    cache_hits: CountOrZero
    sessions: CountOrZero
    wall_s: float | None = None
    """First send to last end, warm-ups left out; summed over the client's sessions."""
    requests_per_s: float | None = None
    """Answered requests."""
    tokens_per_s: float | None = None
    latency_s: dict[str, float]
    """'p50', 'p95', 'p99' and 'mean' of answered requests, by linear interpolation between order
    statistics (Hyndman and Fan 1996, type 7)."""
    compared: CountOrZero
    """Answered requests whose case was answered in another phase or by another replica before."""
    same_tokens: CountOrZero
    """Of these, the ones with the same token sequence as the first answer to that case."""
    near_ties: CountOrZero
    """Of the others, the ones that first differ where the two top logits tie within rounding."""
    agreement: float | None = None
    """Share of requests that were answered, with the same tokens as in every other phase."""
    uncounted: bool = False
    """The client's record of a cut phase could not be had: counts of requests say nothing."""


class Shortfall(Model):
    """What an incomplete study did not do."""

    because: Cause
    why: str
    arms_not_run: tuple[str, ...]
    """Arms without a candidate."""
    not_decided: tuple[str, ...]
    """Declared decisions whose inputs were not measured."""


class Results(Model):
    """The whole of results.json."""

    schema_: Literal["harness/results/1"] = Field(alias="schema")
    plan: str
    plan_hash: Sha256
    run: str
    identity: Sha256
    models: tuple[ModelResult, ...]
    arms: tuple[ArmResult, ...]
    flips: tuple[Flips, ...]
    distances: tuple[Distance, ...]
    flip_floor: FloorResult | None = None
    serving: tuple[PhaseResult, ...] = ()
    """Serving phases in the declared order."""
    decisions: tuple[Decided, ...]
    stages: dict[str, float]
    """Seconds by stage, for the stages that ran before this file was written."""
    predicted: tuple[Predicted, ...]
    inputs: dict[str, Sha256]
    """Hashes of the receipts that these numbers come from."""
    limits: tuple[str, ...]
    not_run: tuple[str, ...]
    """Stages that did not run."""
    incomplete: Shortfall | None = None
    """Set when the study ended before all of it was measured."""


class HostCost(Model):
    """One host's life as observed."""

    host: str
    type: str
    launched_utc: str
    """On AWS: before its launch was asked for."""
    ended_utc: str | None = None
    """On AWS: when AWS was first seen to say 'terminated'."""
    seconds: float | None = None
    id: str | None = None
    """AWS's id; absent for workers on this computer."""
    attempt: str | None = None
    """The launch and the placement that was tried, such as '1.0'."""
    zone: str | None = None


class VolumeCost(Model):
    """One volume's life as observed."""

    id: str
    gib: CountOrZero
    created_utc: str
    gone_utc: str | None = None
    """When AWS was first seen to say NotFound; absent: it was still there."""


class GoneThing(Model):
    """Something else of the fleet: a group, a schedule, a part of its network."""

    kind: str
    id: str
    gone_utc: str | None = None
    """When AWS was first seen not to show it any more; absent: it was still there."""


class CostLine(Model):
    """quantity x unit price."""

    what: str
    quantity: str
    """Decimal text."""
    unit: str
    unit_price_usd: Money
    sku: str
    price_date: str
    bound_usd: Money


class Resources(Model):
    """resources.json: what the fleet cost at most. A bound, not an invoice."""

    schema_: Literal["harness/resources/1"] = Field(alias="schema")
    fleet: str
    fleet_kind: str
    studies: tuple[str, ...]
    """Run ids that the fleet carried."""
    attempts: CountOrZero
    hosts: tuple[HostCost, ...]
    volumes: tuple[VolumeCost, ...] | None = None
    removed: tuple[GoneThing, ...] | None = None
    """What stood besides hosts and volumes, as searches found it."""
    regions: tuple[str, ...] | None = None
    """Every region that an attempt touched; a search for what is left looks in all of them."""
    observed_utc: str | None = None
    """When the fleet was last looked at for this record."""
    lines: tuple[CostLine, ...]
    allowance_usd: Money
    total_bound_usd: Money
    ceiling_usd: Money
    deadlines: tuple[str, ...]
    """What was proved of each deadline."""
    residue: tuple[str, ...]
    preservation_sha256: Sha256 | None = None
    state: Literal["stack still present", "final"]
    note: str
