"""What `harness admit` accepted: the one object between admission, the Pulumi program and run.

It stands in the stack's configuration and in the fleet's folder, word for word. Nothing secret.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from harness.admission import Bound
from harness.plan.hosts import InstanceType, Region, Volume, Zone
from harness.plan.kinds import Count, Money, NotNegative, Sha256, Text
from harness.strict import Model

FleetId = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]{2,62}$")]
Cidr = Annotated[str, StringConstraints(pattern=r"^[0-9]{1,3}(\.[0-9]{1,3}){3}/[0-9]{1,2}$")]


class Placement(Model):
    """One way to place the whole fleet: one type, and a zone for each slot."""

    type: InstanceType
    zones: Annotated[tuple[Zone, ...], Field(min_length=1)]
    """By slot; all the same with placement 'one-zone'."""


class AdmittedFleet(Model):
    """A fleet that may be launched, once, until `deadline_utc`."""

    schema_: Literal["harness/admitted/1"] = Field(default="harness/admitted/1", alias="schema")
    fleet: FleetId
    study: Text
    """The plan's name."""
    plan_path: Text
    plan_hash: Sha256
    source_commit: Text
    account: Annotated[str, StringConstraints(pattern=r"^[0-9]{12}$")]
    region: Region
    attempt: Count
    """Which launch of this plan this is, from 1."""
    deadline_utc: Text
    """Absolute, from admission; no later `up` moves it."""
    count: Annotated[int, Field(ge=1, le=16)]
    placements: Annotated[tuple[Placement, ...], Field(min_length=1)]
    """In the order in which they are tried; plain `pulumi up` tries `chosen` only."""
    chosen: Annotated[int, Field(ge=0)] = 0
    one_zone: bool
    """Whether the hosts stand in one zone, in a cluster placement group."""
    network: Literal["own", "default"]
    image_id: Text
    image_name: Text
    volume: Volume
    operator_cidr: Cidr
    """The only address that SSH is admitted from; changed by `harness access`."""
    login_public_key: Text
    bucket: Text
    bucket_present: bool
    """Seen at admission: the program adopts it."""
    prefix: Text
    """What the hosts may read and write: objects/ (the store) and fleets/<fleet>/ below it."""
    traffic_gb_per_host: NotNegative | None = None
    """The plan's cap; absent in admissions that never launch."""
    budget_usd: Money
    bound: Bound

    @property
    def placement(self) -> Placement:
        """The placement that this `up` tries."""
        return self.placements[self.chosen]
