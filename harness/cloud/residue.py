"""What of a fleet is still there: every page, by tag and by attachment, in every region touched.

Bystanders are never named: a tag's value must be exactly the fleet, and what hangs on another's
host is that host's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.cloud import observe
from harness.cloud.clients import Aws, asking
from harness.cloud.left import Kind, Known, Left, by_order, fleet_of
from harness.cloud.seen import tag_map
from harness.fleet.tags import FLEET

IAM_ROOT = "/harness/"
"""Roles and instance profiles of a fleet lie below '/harness/FLEET/'."""


@dataclass(frozen=True)
class _Tagged:
    """A kind that DescribeX finds by tag."""

    kind: Kind
    call: str
    answer: str
    id: str


TAGGED = (
    _Tagged("interface", "describe_network_interfaces", "NetworkInterfaces", "NetworkInterfaceId"),
    _Tagged("address", "describe_addresses", "Addresses", "AllocationId"),
    _Tagged("security group", "describe_security_groups", "SecurityGroups", "GroupId"),
    _Tagged("VPC endpoint", "describe_vpc_endpoints", "VpcEndpoints", "VpcEndpointId"),
    _Tagged("subnet", "describe_subnets", "Subnets", "SubnetId"),
    _Tagged("route table", "describe_route_tables", "RouteTables", "RouteTableId"),
    _Tagged(
        "internet gateway", "describe_internet_gateways", "InternetGateways", "InternetGatewayId"
    ),
    _Tagged("VPC", "describe_vpcs", "Vpcs", "VpcId"),
    _Tagged("placement group", "describe_placement_groups", "PlacementGroups", "GroupName"),
    _Tagged("key pair", "describe_key_pairs", "KeyPairs", "KeyName"),
)


def residue(
    aws: Aws, fleet: str, *, regions: Sequence[str] = (), known: Known | None = None
) -> tuple[Left, ...]:
    """Everything of one fleet that AWS still shows, in the order of removal; () is nothing.

    `regions` are all that its attempts touched (absent: that of `aws`). Raises when AWS refuses to
    show a kind: what cannot be seen is not 'gone'.
    """
    found: list[Left] = []
    for region in dict.fromkeys(regions or (aws.region,)):
        found += _in_region(aws.elsewhere(region), fleet, known or Known())
    found += _identities(aws, fleet)
    return by_order(tuple(found))


def every_fleet(aws: Aws, *, regions: Sequence[str] = ()) -> dict[str, tuple[Left, ...]]:
    """All that carries a fleet's tag, by fleet."""
    found: list[Left] = []
    for region in dict.fromkeys(regions or (aws.region,)):
        found += _in_region(aws.elsewhere(region), "", Known())
    found += _identities(aws, "")
    fleets = sorted({each.fleet for each in found})
    return {name: by_order(tuple(x for x in found if x.fleet == name)) for name in fleets}


def _in_region(aws: Aws, fleet: str, known: Known) -> list[Left]:
    """`fleet` '' is any."""
    wanted: dict[str, str | Sequence[str]] = _tag_filter(fleet)
    found = [*_instances(aws, fleet, wanted, known)]
    hosts = {each.id: each.fleet for each in found} | dict.fromkeys(known.instances, fleet)
    found += _volumes(aws, fleet, wanted, known, hosts)
    for tagged in TAGGED:
        found += _tagged(aws, tagged, fleet, wanted)
    groups = {x.id: x.fleet for x in found if x.kind == "security group"}
    groups |= dict.fromkeys(known.groups, fleet)
    found += _attached_interfaces(aws, hosts, groups)
    nics = {x.id: x.fleet for x in found if x.kind == "interface"}
    found += _attached_addresses(aws, hosts, nics)
    found += _known_groups(aws, fleet, known)
    found += _schedules(aws, fleet)
    return list({(each.kind, each.id): each for each in reversed(found)}.values())


def _tag_filter(fleet: str) -> dict[str, str | Sequence[str]]:
    return {f"tag:{FLEET}": fleet} if fleet else {"tag-key": FLEET}


def _ours(tags: Mapping[str, str], fleet: str) -> bool:
    """AWS's filters take wildcards, so the answer is compared again."""
    return tags.get(FLEET) == fleet if fleet else FLEET in tags


def _instances(
    aws: Aws, fleet: str, wanted: Mapping[str, str | Sequence[str]], known: Known
) -> Iterator[Left]:
    by_id = [each for each in observe.instances_by_id(aws, known.instances).values() if each]
    by_tag = [x for x in observe.find_instances(aws, wanted) if _ours(x.tags, fleet)]
    for seen in [*by_id, *by_tag]:
        if not seen.terminated:
            yield Left(
                kind="instance", id=seen.id, region=aws.region, fleet=seen.fleet or fleet,
                why="tag" if seen.fleet else "id", state=seen.state, tags=seen.tags,
            )  # fmt: skip


def _volumes(
    aws: Aws,
    fleet: str,
    wanted: Mapping[str, str | Sequence[str]],
    known: Known,
    hosts: Mapping[str, str],
) -> Iterator[Left]:
    found = {x.id: (x, "tag") for x in observe.find_volumes(aws, wanted) if _ours(x.tags, fleet)}
    if hosts:
        attached = observe.find_volumes(aws, {"attachment.instance-id": sorted(hosts)})
        found |= {x.id: (x, f"attachment to {x.attached_to[0]}") for x in attached
                  if x.id not in found}  # fmt: skip
    for each in known.volumes:
        seen = None if each in found else observe.volume(aws, each)
        if seen is not None:
            found[each] = (seen, "id")
    for seen, why in found.values():
        owner = seen.fleet or next((hosts[x] for x in seen.attached_to if x in hosts), fleet)
        yield Left(kind="volume", id=seen.id, region=aws.region, fleet=owner, why=why,
                   state=seen.state, tags=seen.tags)  # fmt: skip


def _tagged(
    aws: Aws, tagged: _Tagged, fleet: str, wanted: Mapping[str, str | Sequence[str]]
) -> Iterator[Left]:
    for raw in pages(aws, tagged.call, tagged.answer, wanted):
        tags = tag_map(raw.get("Tags") or raw.get("TagSet"))
        gone = str(raw.get("State", "")).lower() in ("deleted", "deleting")
        if _ours(tags, fleet) and not gone:
            yield Left(kind=tagged.kind, id=raw[tagged.id], region=aws.region,
                       fleet=fleet_of(tags), why="tag", tags=tags,
                       state=str(raw.get("Status") or raw.get("State") or ""))  # fmt: skip


def pages(
    aws: Aws, call: str, answer: str, wanted: Mapping[str, str | Sequence[str]]
) -> Iterator[dict[str, Any]]:
    """Every entry of a Describe call of EC2, through all pages (some have none)."""
    client: Any = aws.ec2
    with asking(f"for the {answer} ({call})", where=aws.region):
        if client.can_paginate(call):
            for page in client.get_paginator(call).paginate(Filters=observe.filters(wanted)):
                yield from page[answer]
            return
        token: dict[str, str] = {}
        while True:
            page = getattr(client, call)(Filters=observe.filters(wanted), **token)
            yield from page[answer]
            if not page.get("NextToken"):
                return
            token = {"NextToken": page["NextToken"]}


def _attached_interfaces(
    aws: Aws, hosts: Mapping[str, str], groups: Mapping[str, str]
) -> Iterator[Left]:
    """Interfaces carry no tag: those of the fleet's hosts, and loose ones in its groups."""
    call, answer = "describe_network_interfaces", "NetworkInterfaces"
    if hosts:
        for raw in pages(aws, call, answer, {"attachment.instance-id": sorted(hosts)}):
            host = raw["Attachment"]["InstanceId"]
            yield Left(kind="interface", id=raw["NetworkInterfaceId"], region=aws.region,
                       fleet=hosts[host], why=f"attachment to {host}",
                       state=raw.get("Status", ""))  # fmt: skip
    if groups:
        for raw in pages(aws, call, answer, {"group-id": sorted(groups)}):
            if not (raw.get("Attachment") or {}).get("InstanceId"):
                group = next(x["GroupId"] for x in raw["Groups"] if x["GroupId"] in groups)
                yield Left(kind="interface", id=raw["NetworkInterfaceId"], region=aws.region,
                           fleet=groups[group], why=f"its group {group}",
                           state=raw.get("Status", ""))  # fmt: skip


def _attached_addresses(
    aws: Aws, hosts: Mapping[str, str], nics: Mapping[str, str]
) -> Iterator[Left]:
    for name, held in (("instance-id", hosts), ("network-interface-id", nics)):
        if not held:
            continue
        for raw in pages(aws, "describe_addresses", "Addresses", {name: sorted(held)}):
            on = raw.get("InstanceId") or raw.get("NetworkInterfaceId") or ""
            on = on if on in held else raw.get("NetworkInterfaceId", "")
            yield Left(kind="address", id=raw["AllocationId"], region=aws.region,
                       fleet=held.get(on, ""), why=f"attachment to {on}")  # fmt: skip


def _known_groups(aws: Aws, fleet: str, known: Known) -> Iterator[Left]:
    if known.groups:
        wanted = {"group-id": list(known.groups)}
        for raw in pages(aws, "describe_security_groups", "SecurityGroups", wanted):
            tags = tag_map(raw.get("Tags"))
            yield Left(kind="security group", id=raw["GroupId"], region=aws.region,
                       fleet=fleet_of(tags) or fleet, why="id", tags=tags)  # fmt: skip


def _schedules(aws: Aws, fleet: str) -> Iterator[Left]:
    """Groups carry the tag, schedules are in them."""
    with asking("to list the schedules", where=aws.region):
        for page in aws.scheduler.get_paginator("list_schedule_groups").paginate():
            for group in page["ScheduleGroups"]:
                if group["Name"] == "default" or group.get("State") == "DELETING":
                    continue
                answer = aws.scheduler.list_tags_for_resource(ResourceArn=group["Arn"])
                tags = {tag["Key"]: tag["Value"] for tag in answer.get("Tags", [])}
                if _ours(tags, fleet):
                    yield from _of_group(aws, group["Name"], tags)


def _of_group(aws: Aws, group: str, tags: dict[str, str]) -> Iterator[Left]:
    fleet = fleet_of(tags)
    yield Left(kind="schedule group", id=group, region=aws.region, fleet=fleet, why="tag",
               tags=tags)  # fmt: skip
    for page in aws.scheduler.get_paginator("list_schedules").paginate(GroupName=group):
        for each in page["Schedules"]:
            yield Left(kind="schedule", id=f"{group}/{each['Name']}", region=aws.region,
                       fleet=fleet, why=f"its group {group}", state=each.get("State", ""),
                       tags=tags)  # fmt: skip


def _identities(aws: Aws, fleet: str) -> Iterable[Left]:
    """Roles and instance profiles, by path (IAM has no search by tag)."""
    path = f"{IAM_ROOT}{fleet}/" if fleet else IAM_ROOT
    found: list[tuple[Kind, str, str]] = []
    with asking("to list roles and instance profiles", where="IAM"):
        for roles in aws.iam.get_paginator("list_roles").paginate(PathPrefix=path):
            found += [("role", each["RoleName"], each["Path"]) for each in roles["Roles"]]
        profiles_of = aws.iam.get_paginator("list_instance_profiles")
        for profiles in profiles_of.paginate(PathPrefix=path):
            found += [
                ("instance profile", each["InstanceProfileName"], each["Path"])
                for each in profiles["InstanceProfiles"]
            ]
    for kind, name, where in found:
        owner = where.split("/")[2]
        yield Left(kind=kind, id=name, region="IAM", fleet=owner, why=f"its path {where}")
