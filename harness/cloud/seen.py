"""What AWS showed of a thing, and when (typed; nothing here asks)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from harness.clock import utc_text
from harness.fleet.tags import ATTEMPT, FLEET, SLOT
from harness.strict import Model

if TYPE_CHECKING:
    from types_boto3_ec2.type_defs import InstanceTypeDef, TagTypeDef, VolumeTypeDef

ALIVE = ("pending", "running", "stopping", "stopped", "shutting-down")
"""States of an instance that is not gone; 'shutting-down' may still be billed when it hibernates
or hangs, so only 'terminated' ends a host."""


class Seen(Model):
    """Any thing with tags."""

    id: str
    region: str
    tags: dict[str, str]
    seen_utc: str
    """When AWS answered."""

    @property
    def fleet(self) -> str:
        """Its fleet by tag, '' when it has none."""
        return self.tags.get(FLEET, "")


class SeenInstance(Seen):
    """One instance as DescribeInstances shows it."""

    type: str
    zone: str
    state: str
    reason: str
    """StateReason, or StateTransitionReason; '' when AWS gives none."""
    launched_utc: str
    """AWS's LaunchTime."""
    private_address: str
    public_address: str
    volumes: tuple[str, ...]
    interfaces: tuple[str, ...]
    groups: tuple[str, ...]
    client_token: str

    @property
    def slot(self) -> str:
        """Its slot by tag, '' when it has none."""
        return self.tags.get(SLOT, "")

    @property
    def attempt(self) -> str:
        """Its attempt by tag, '' when it has none."""
        return self.tags.get(ATTEMPT, "")

    @property
    def terminated(self) -> bool:
        """AWS's own word that it is gone."""
        return self.state == "terminated"


class SeenVolume(Seen):
    """One EBS volume as DescribeVolumes shows it."""

    state: str
    gib: int
    iops: int
    throughput_mbps: int
    created_utc: str
    attached_to: tuple[str, ...]


class Checks(Model):
    """Whether a host is fit to be used: 'running' alone does not say so."""

    id: str
    state: str
    instance: str
    """Status check of the instance: 'ok', 'initializing', 'impaired', 'insufficient-data'."""
    system: str
    reason: str
    seen_utc: str

    @property
    def verdict(self) -> Literal["ready", "not yet", "failed"]:
        """'failed' does not become ready by waiting."""
        if self.state in ("shutting-down", "terminated", "stopping", "stopped"):
            return "failed"
        if "impaired" in (self.instance, self.system):
            return "failed"
        ready = self.state == "running" and self.instance == self.system == "ok"
        return "ready" if ready else "not yet"


def tag_map(tags: Sequence[TagTypeDef] | None) -> dict[str, str]:
    """AWS's list of tags as a mapping."""
    return {tag.get("Key", ""): tag.get("Value", "") for tag in tags or ()}


def seen_instance(raw: InstanceTypeDef, region: str, now: datetime) -> SeenInstance:
    """One entry of DescribeInstances."""
    why = raw.get("StateReason") or {}
    ebs = [each.get("Ebs") or {} for each in raw.get("BlockDeviceMappings", [])]
    nics = raw.get("NetworkInterfaces", [])
    return SeenInstance(
        id=raw.get("InstanceId", ""),
        region=region,
        tags=tag_map(raw.get("Tags")),
        seen_utc=utc_text(now),
        type=str(raw.get("InstanceType", "")),
        zone=(raw.get("Placement") or {}).get("AvailabilityZone", ""),
        state=str((raw.get("State") or {}).get("Name", "")),
        reason=why.get("Message", "") or raw.get("StateTransitionReason", ""),
        launched_utc=_moment(raw.get("LaunchTime"), now),
        private_address=raw.get("PrivateIpAddress", ""),
        public_address=raw.get("PublicIpAddress", ""),
        volumes=tuple(each["VolumeId"] for each in ebs if "VolumeId" in each),
        interfaces=tuple(each.get("NetworkInterfaceId", "") for each in nics),
        groups=tuple(each.get("GroupId", "") for each in raw.get("SecurityGroups", [])),
        client_token=raw.get("ClientToken", ""),
    )


def seen_volume(raw: VolumeTypeDef, region: str, now: datetime) -> SeenVolume:
    """One entry of DescribeVolumes."""
    return SeenVolume(
        id=raw.get("VolumeId", ""),
        region=region,
        tags=tag_map(raw.get("Tags")),
        seen_utc=utc_text(now),
        state=str(raw.get("State", "")),
        gib=raw.get("Size", 0),
        iops=raw.get("Iops", 0),
        throughput_mbps=raw.get("Throughput", 0),
        created_utc=_moment(raw.get("CreateTime"), now),
        attached_to=tuple(each.get("InstanceId", "") for each in raw.get("Attachments", [])),
    )


def has_tags(tags: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    """Whether exactly these values stand there: AWS's filters take '*' and '?' as wildcards."""
    return all(tags.get(name) == value for name, value in wanted.items())


def _moment(value: datetime | None, otherwise: datetime) -> str:
    return utc_text(value or otherwise)
