"""Look-ups (invokes) that programs make."""

from __future__ import annotations

from collections.abc import Callable

from tests.engine.provider.kind import Cloud, Values


def _vpc(cloud: Cloud, arguments: Values) -> Values:
    filters = [{"Name": "is-default", "Values": [str(arguments["default"]).lower()]}]
    there = cloud.client("ec2").describe_vpcs(Filters=filters)["Vpcs"]
    if len(there) != 1:
        raise LookupError(f"{len(there)} VPCs match {arguments}")
    return {**arguments, "id": there[0]["VpcId"], "cidrBlock": there[0]["CidrBlock"]}


def _subnet(cloud: Cloud, arguments: Values) -> Values:
    filters = [
        {"Name": "vpc-id", "Values": [arguments["vpcId"]]},
        {"Name": "availability-zone", "Values": [arguments["availabilityZone"]]},
        {"Name": "default-for-az", "Values": [str(arguments["defaultForAz"]).lower()]},
    ]
    there = cloud.client("ec2").describe_subnets(Filters=filters)["Subnets"]
    if len(there) != 1:
        raise LookupError(f"{len(there)} subnets match {arguments}")
    return {**arguments, "id": there[0]["SubnetId"]}


LOOKUPS: dict[str, Callable[[Cloud, Values], Values]] = {
    "aws:ec2/getVpc:getVpc": _vpc,
    "aws:ec2/getSubnet:getSubnet": _subnet,
}
