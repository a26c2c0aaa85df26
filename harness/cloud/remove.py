"""Removing what is left of a fleet, in an order that AWS accepts, with bounded patience.

Hosts first, by AWS's own word; only then their schedules, which are the outer deadline.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from botocore.exceptions import ClientError

from harness.cloud.clients import Aws, absent, asking, code_of, words_of
from harness.cloud.left import Kind, Left, by_order
from harness.cloud.network import remove_gateway, remove_table, revoke_rules
from harness.cloud.residue import pages
from harness.cloud.terminate import end_hosts, ended_or_raise, follow_volumes
from harness.errors import Leaked, command
from harness.strict import Model

HELD = ("DependencyViolation", "InUse", "InvalidPlacementGroup.InUse", "DeleteConflict",
        "InvalidParameterValue", "ConflictException", "IncorrectState")  # fmt: skip
"""AWS's words for 'something still holds it': ends are asynchronous, so these are waited out.
(InvalidParameterValue is what an interface that is still in use gives.)"""
PATIENCE_S = 300.0
FIRST_WAIT_S = 5.0
LONGEST_WAIT_S = 40.0


class Removed(Model):
    """One thing that was removed, and when AWS had accepted that."""

    kind: Kind
    id: str
    region: str
    utc: str


def remove(aws: Aws, left: Sequence[Left]) -> tuple[Removed, ...]:
    """Remove what `residue` found. Harmless to repeat.

    Raises Waiting when a host does not end (then nothing further was removed) and Leaked, naming
    it and its holder, for what AWS still refuses to remove after `PATIENCE_S`.
    """
    removed: list[Removed] = []
    things = by_order(tuple(left))
    for region in dict.fromkeys(each.region for each in things if each.kind == "instance"):
        here = aws.elsewhere(region)
        ids = [each.id for each in things if each.region == region and each.kind == "instance"]
        for host in ended_or_raise(end_hosts(here, ids)):
            removed.append(_removed("instance", host.id, region, host.ended_utc))
    for region in dict.fromkeys(each.region for each in things if each.kind == "volume"):
        here = aws.elsewhere(region)
        ids = [each.id for each in things if each.region == region and each.kind == "volume"]
        for volume in follow_volumes(here, ids):
            removed.append(_removed("volume", volume.id, region, volume.gone_utc))
    groups = [each for each in things if each.kind == "security group"]
    for group in groups:  # groups that name each other can only go without their rules
        revoke_rules(aws.elsewhere(group.region), group.id)
    for each in things:
        if each.kind not in ("instance", "volume"):
            here = aws if each.region == "IAM" else aws.elsewhere(each.region)
            _patiently(here, each)
            removed.append(_removed(each.kind, each.id, each.region, here.clock.utc()))
    return tuple(removed)


def _removed(kind: Kind, thing: str, region: str, utc: str) -> Removed:
    return Removed(kind=kind, id=thing, region=region, utc=utc)


def _patiently(aws: Aws, each: Left) -> None:
    until, wait = aws.clock.monotonic() + PATIENCE_S, FIRST_WAIT_S
    while True:
        with asking(f"to remove the {each.kind} {each.id}", where=each.region):
            try:
                REMOVERS[each.kind](aws, each.id)
                return
            except ClientError as error:
                if absent(error):
                    return
                if not code_of(error).endswith(HELD):
                    raise
                said = f"{code_of(error)}: {words_of(error)}"
        if aws.clock.monotonic() >= until:
            raise Leaked(
                f"the {each.kind} is still held after {PATIENCE_S:.0f} s ({said}); "
                f"{holders(aws, each)}",
                where=f"{each.region} {each.id}",
                next_command=command("sweep", "--fleet", each.fleet, "--remove"),
            )
        aws.clock.sleep(wait)
        wait = min(2 * wait, LONGEST_WAIT_S)


def holders(aws: Aws, each: Left) -> str:
    """What still holds a group, subnet or VPC, as a person reads it."""
    filter_of = {"security group": "group-id", "subnet": "subnet-id", "VPC": "vpc-id",
                 "internet gateway": "vpc-id"}  # fmt: skip
    name = filter_of.get(each.kind)
    if name is None or each.kind == "internet gateway":
        return "what holds it is not known"
    found = [
        f"{raw['NetworkInterfaceId']}"
        + (f" of {raw['Attachment'].get('InstanceId') or 'a service'}"
           if raw.get("Attachment") else "")
        for raw in pages(aws, "describe_network_interfaces", "NetworkInterfaces", {name: each.id})
    ]  # fmt: skip
    if each.kind == "security group":
        wanted = {"ip-permission.group-id": each.id}
        found += [
            f"a rule of {raw['GroupId']}"
            for raw in pages(aws, "describe_security_groups", "SecurityGroups", wanted)
            if raw["GroupId"] != each.id
        ]
    return f"held by {', '.join(found)}" if found else "AWS shows nothing that holds it"


def _schedule(aws: Aws, thing: str) -> None:
    group, _, name = thing.partition("/")
    aws.scheduler.delete_schedule(GroupName=group, Name=name)


def _schedule_group(aws: Aws, name: str) -> None:
    aws.scheduler.delete_schedule_group(Name=name)


def _address(aws: Aws, allocation: str) -> None:
    held = aws.ec2.describe_addresses(AllocationIds=[allocation])["Addresses"]
    for association in [each["AssociationId"] for each in held if "AssociationId" in each]:
        aws.ec2.disassociate_address(AssociationId=association)
    aws.ec2.release_address(AllocationId=allocation)


def _interface(aws: Aws, interface: str) -> None:
    aws.ec2.delete_network_interface(NetworkInterfaceId=interface)


def _endpoint(aws: Aws, endpoint: str) -> None:
    answer = aws.ec2.delete_vpc_endpoints(VpcEndpointIds=[endpoint])
    for each in answer.get("Unsuccessful", []):  # AWS answers 200 for what it did not do
        raise ClientError({"Error": dict(each.get("Error", {}))}, "DeleteVpcEndpoints")  # type: ignore[typeddict-item]


def _profile(aws: Aws, name: str) -> None:
    for role in aws.iam.get_instance_profile(InstanceProfileName=name)["InstanceProfile"]["Roles"]:
        aws.iam.remove_role_from_instance_profile(
            InstanceProfileName=name, RoleName=role["RoleName"]
        )
    aws.iam.delete_instance_profile(InstanceProfileName=name)


def _role(aws: Aws, name: str) -> None:
    for page in aws.iam.get_paginator("list_role_policies").paginate(RoleName=name):
        for policy in page["PolicyNames"]:
            aws.iam.delete_role_policy(RoleName=name, PolicyName=policy)
    for attached in aws.iam.get_paginator("list_attached_role_policies").paginate(RoleName=name):
        for each in attached["AttachedPolicies"]:
            aws.iam.detach_role_policy(RoleName=name, PolicyArn=each["PolicyArn"])
    aws.iam.delete_role(RoleName=name)


REMOVERS: dict[Kind, Callable[[Aws, str], Any]] = {
    "schedule": _schedule,
    "schedule group": _schedule_group,
    "address": _address,
    "interface": _interface,
    "VPC endpoint": _endpoint,
    "security group": lambda aws, each: aws.ec2.delete_security_group(GroupId=each),
    "subnet": lambda aws, each: aws.ec2.delete_subnet(SubnetId=each),
    "route table": remove_table,
    "internet gateway": remove_gateway,
    "VPC": lambda aws, each: aws.ec2.delete_vpc(VpcId=each),
    "placement group": lambda aws, each: aws.ec2.delete_placement_group(GroupName=each),
    "key pair": lambda aws, each: aws.ec2.delete_key_pair(KeyName=each),
    "instance profile": _profile,
    "role": _role,
}
"""How each kind that is not a host or a volume is removed."""
