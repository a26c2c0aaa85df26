"""Hosts as EC2 shows them, found by tag: the only word that counts on what exists."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.fleet import tags
from harness.launch.refusals import asking

if TYPE_CHECKING:
    from boto3.session import Session


@dataclass(frozen=True)
class FoundHost:
    """One instance with the fleet's tags."""

    id: str
    fleet: str
    slot: str
    attempt: str
    state: str
    type: str
    zone: str
    launched_utc: str
    private_address: str
    public_address: str
    reason: str

    @property
    def costs(self) -> bool:
        """Whether it is anything but terminated."""
        return self.state != "terminated"

    @property
    def ending(self) -> bool:
        """Whether it is on its way out or gone."""
        return self.state in ("shutting-down", "terminated")


def hosts_of_study(session: Session, region: str, study: str) -> tuple[FoundHost, ...]:
    """Instances of every fleet of a study: exactly these tags, not nearly these."""
    found = _hosts(session, region, {f"tag:{tags.STUDY}": study})
    return tuple(host for host in found if host.fleet)


def hosts_of_fleet(session: Session, region: str, fleet: str) -> tuple[FoundHost, ...]:
    """Instances of one fleet, terminated ones too while EC2 still shows them."""
    return _hosts(session, region, {f"tag:{tags.FLEET}": fleet})


def _hosts(session: Session, region: str, wanted: Mapping[str, str]) -> tuple[FoundHost, ...]:
    pages = session.client("ec2", region_name=region).get_paginator("describe_instances")
    filters: Any = [{"Name": name, "Values": [value]} for name, value in wanted.items()]
    with asking("the hosts"):
        return tuple(
            _seen(instance)
            for page in pages.paginate(Filters=filters)
            for reservation in page["Reservations"]
            for instance in reservation["Instances"]
        )


def _seen(instance: Mapping[str, Any]) -> FoundHost:
    named = {tag["Key"]: tag["Value"] for tag in instance.get("Tags", ())}
    reason = instance.get("StateReason", {}).get("Message", "")
    return FoundHost(
        id=instance["InstanceId"],
        fleet=named.get(tags.FLEET, ""),
        slot=named.get(tags.SLOT, ""),
        attempt=named.get(tags.ATTEMPT, ""),
        state=instance["State"]["Name"],
        type=instance["InstanceType"],
        zone=instance["Placement"]["AvailabilityZone"],
        launched_utc=instance["LaunchTime"].strftime("%Y-%m-%dT%H:%M:%SZ"),
        private_address=instance.get("PrivateIpAddress") or "",
        public_address=instance.get("PublicIpAddress") or "",
        reason=f"{instance.get('StateTransitionReason', '')} {reason}".strip(),
    )


def living(hosts: Iterable[FoundHost]) -> tuple[FoundHost, ...]:
    """Those that run or start."""
    return tuple(host for host in hosts if not host.ending)
