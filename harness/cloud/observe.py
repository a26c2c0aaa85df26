"""Looking: by tag or by id, every page, and a new thing's id is never dropped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from harness.clock import utc_text
from harness.cloud.clients import Aws, absent, asking
from harness.cloud.seen import (
    Checks,
    SeenInstance,
    SeenVolume,
    has_tags,
    seen_instance,
    seen_volume,
)
from harness.errors import Waiting, command
from harness.fleet.tags import FLEET

if TYPE_CHECKING:
    from types_boto3_ec2.type_defs import FilterTypeDef, InstanceStatusTypeDef

APPEAR_S = 120.0
"""How long a new id may be unknown to DescribeInstances (EC2 developer guide, 'Eventual
consistency': minutes at most)."""
POLL_S = 5.0
PAGE = 200
STATUSES = 100
"""Ids of one DescribeInstanceStatus; it gives all of them in one page."""


def filters(wanted: Mapping[str, str | Sequence[str]]) -> list[FilterTypeDef]:
    """AWS's form of filters by name."""
    return [
        {"Name": name, "Values": [values] if isinstance(values, str) else list(values)}
        for name, values in wanted.items()
    ]


def tag_filters(tags: Mapping[str, str]) -> dict[str, str]:
    """Filters for exactly these tags."""
    return {f"tag:{name}": value for name, value in tags.items()}


def find_instances(aws: Aws, wanted: Mapping[str, str | Sequence[str]]) -> tuple[SeenInstance, ...]:
    """All instances that pass AWS's filters, terminated ones too while AWS shows them."""
    pages = aws.ec2.get_paginator("describe_instances")
    with asking("to list the instances", where=aws.region):
        return tuple(
            seen_instance(raw, aws.region, aws.clock.now())
            for page in pages.paginate(Filters=filters(wanted), PaginationConfig={"PageSize": PAGE})
            for reservation in page["Reservations"]
            for raw in reservation.get("Instances", [])
        )


def instances_by_tag(aws: Aws, tags: Mapping[str, str]) -> tuple[SeenInstance, ...]:
    """Instances with exactly these tags; {} is none, never all."""
    if not tags:
        return ()
    found = find_instances(aws, tag_filters(tags))
    return tuple(each for each in found if has_tags(each.tags, tags))


def instances_of_fleet(aws: Aws, fleet: str) -> tuple[SeenInstance, ...]:
    """Every instance of a fleet that AWS still shows."""
    return instances_by_tag(aws, {FLEET: fleet})


def instances_by_id(aws: Aws, ids: Sequence[str]) -> dict[str, SeenInstance | None]:
    """Each id with what AWS shows of it now; None is 'not shown', which is not the same as gone.

    Asked by filter, so that one unknown id does not hide the others.
    """
    if not ids:
        return {}
    found = {each.id: each for each in find_instances(aws, {"instance-id": list(ids)})}
    return {each: found.get(each) for each in ids}


def new_instances(
    aws: Aws, ids: Sequence[str], *, limit_s: float = APPEAR_S
) -> tuple[SeenInstance, ...]:
    """Instances that RunInstances named, in order, once AWS shows all of them.

    Raises Waiting after `limit_s`, naming every id that is not shown: it may exist and cost.
    """
    until = aws.clock.monotonic() + limit_s
    while True:
        shown = instances_by_id(aws, ids)
        missing = [each for each, seen in shown.items() if seen is None]
        if not missing:
            return tuple(seen for seen in shown.values() if seen is not None)
        if aws.clock.monotonic() >= until:
            raise Waiting(
                f"AWS does not show {', '.join(missing)} within {limit_s:.0f} s of the launch; "
                "it may exist and cost money",
                where=aws.region,
                next_command=command("sweep", "--region", aws.region),
            )
        aws.clock.sleep(POLL_S)


def checks(aws: Aws, ids: Sequence[str]) -> dict[str, Checks]:
    """State and status checks of hosts (DescribeInstanceStatus, those not running included)."""
    shown = instances_by_id(aws, ids)
    visible = [each for each, seen in shown.items() if seen is not None]
    raws: dict[str, InstanceStatusTypeDef] = {}
    with asking("for the status checks", where=aws.region):
        for start in range(0, len(visible), STATUSES):
            answer = aws.ec2.describe_instance_status(
                InstanceIds=visible[start : start + STATUSES], IncludeAllInstances=True
            )
            raws |= {raw.get("InstanceId", ""): raw for raw in answer["InstanceStatuses"]}
    result = {}
    for each, seen in shown.items():
        raw = raws.get(each) or {}
        result[each] = Checks(
            id=each,
            state=seen.state if seen else "not shown",
            instance=str((raw.get("InstanceStatus") or {}).get("Status", "not shown")),
            system=str((raw.get("SystemStatus") or {}).get("Status", "not shown")),
            reason=seen.reason if seen else "",
            seen_utc=utc_text(aws.clock.now()),
        )
    return result


def find_volumes(aws: Aws, wanted: Mapping[str, str | Sequence[str]]) -> tuple[SeenVolume, ...]:
    """All volumes that pass AWS's filters."""
    pages = aws.ec2.get_paginator("describe_volumes")
    with asking("to list the volumes", where=aws.region):
        return tuple(
            seen_volume(raw, aws.region, aws.clock.now())
            for page in pages.paginate(Filters=filters(wanted), PaginationConfig={"PageSize": PAGE})
            for raw in page["Volumes"]
        )


def volume(aws: Aws, volume_id: str) -> SeenVolume | None:
    """A volume by id; None only when AWS itself says NotFound."""
    with asking(f"for the volume {volume_id}", where=aws.region):
        try:
            answer = aws.ec2.describe_volumes(VolumeIds=[volume_id])
        except ClientError as error:
            if absent(error):
                return None
            raise
    return seen_volume(answer["Volumes"][0], aws.region, aws.clock.now())
