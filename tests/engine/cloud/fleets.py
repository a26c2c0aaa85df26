"""A whole fleet as the program makes it, and things of others beside it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from harness.fleet.tags import FLEET, STUDY
from tests.engine.cloud.launches import fleet_tags, group, launch, tag_list
from tests.engine.moto.server import MotoCloud


@dataclass(frozen=True)
class Standing:
    """What tests need of it."""

    hosts: tuple[str, ...]
    group: str
    subnet: str
    vpc: str


def named(kind: str, tags: dict[str, str]) -> list[dict[str, Any]]:
    """TagSpecifications of one kind."""
    return [{"ResourceType": kind, "Tags": tag_list(tags)}]


def stand_up(cloud: MotoCloud, fleet: str) -> Standing:
    """One of every kind that the program makes, two hosts, an address and a loose interface."""
    ec2, tags = cloud.client("ec2"), fleet_tags(fleet)
    vpc = ec2.create_vpc(CidrBlock="10.42.0.0/16", TagSpecifications=named("vpc", tags))
    vpc_id = vpc["Vpc"]["VpcId"]
    gateway = ec2.create_internet_gateway(TagSpecifications=named("internet-gateway", tags))
    gateway_id = gateway["InternetGateway"]["InternetGatewayId"]
    ec2.attach_internet_gateway(InternetGatewayId=gateway_id, VpcId=vpc_id)
    table = ec2.create_route_table(VpcId=vpc_id, TagSpecifications=named("route-table", tags))
    table_id = table["RouteTable"]["RouteTableId"]
    ec2.create_route(RouteTableId=table_id, DestinationCidrBlock="0.0.0.0/0", GatewayId=gateway_id)
    ec2.create_vpc_endpoint(
        VpcId=vpc_id, ServiceName="com.amazonaws.us-east-1.s3", VpcEndpointType="Gateway",
        RouteTableIds=[table_id],
        TagSpecifications=named("vpc-endpoint", tags),
    )  # fmt: skip
    subnet = ec2.create_subnet(
        VpcId=vpc_id, CidrBlock="10.42.0.0/20", AvailabilityZone="us-east-1a",
        TagSpecifications=named("subnet", tags),
    )["Subnet"]["SubnetId"]  # fmt: skip
    ec2.associate_route_table(RouteTableId=table_id, SubnetId=subnet)
    held = ec2.create_security_group(
        GroupName=f"{fleet}-hosts", Description="hosts", VpcId=vpc_id,
        TagSpecifications=named("security-group", tags),
    )["GroupId"]  # fmt: skip
    own: list[Any] = [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": held}]}]
    ec2.authorize_security_group_ingress(GroupId=held, IpPermissions=own)
    ec2.create_placement_group(
        GroupName=f"{fleet}-together", Strategy="cluster",
        TagSpecifications=named("placement-group", tags),
    )  # fmt: skip
    ec2.create_key_pair(KeyName=f"{fleet}-login", TagSpecifications=named("key-pair", tags))
    hosts = tuple(
        launch(
            cloud, fleet_tags(fleet, slot), SubnetId=subnet, SecurityGroupIds=[held],
            Placement={"GroupName": f"{fleet}-together"},
        )
        for slot in range(2)
    )  # fmt: skip
    ec2.create_network_interface(SubnetId=subnet, Groups=[held])
    address = ec2.allocate_address(Domain="vpc", TagSpecifications=named("elastic-ip", tags))
    ec2.associate_address(AllocationId=address["AllocationId"], InstanceId=hosts[0])
    identities(cloud, fleet, tags)
    deadlines(cloud, fleet, tags, hosts)
    return Standing(hosts=hosts, group=held, subnet=subnet, vpc=vpc_id)


def identities(cloud: MotoCloud, fleet: str, tags: dict[str, str]) -> None:
    """A role with a policy, in a profile, below the fleet's path."""
    iam, path = cloud.client("iam"), f"/harness/{fleet}/"
    trust = json.dumps({"Version": "2012-10-17", "Statement": []})
    allow = {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::kept/*"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [allow]})
    name = f"{fleet}-host"
    iam.create_role(RoleName=name, Path=path, AssumeRolePolicyDocument=trust, Tags=tag_list(tags))
    iam.put_role_policy(RoleName=name, PolicyName="store", PolicyDocument=policy)
    iam.create_instance_profile(InstanceProfileName=name, Path=path)
    iam.add_role_to_instance_profile(InstanceProfileName=name, RoleName=name)


def deadlines(cloud: MotoCloud, fleet: str, tags: dict[str, str], hosts: tuple[str, ...]) -> None:
    """A schedule a host, in a tagged group."""
    scheduler = cloud.client("scheduler")
    scheduler.create_schedule_group(Name=fleet, Tags=tag_list(tags))
    for slot, host in enumerate(hosts):
        scheduler.create_schedule(
            Name=f"host-{slot}", GroupName=fleet, FlexibleTimeWindow={"Mode": "OFF"},
            ScheduleExpression="at(2040-01-01T00:00:00)",
            Target={
                "Arn": "arn:aws:scheduler:::aws-sdk:ec2:terminateInstances",
                "RoleArn": "arn:aws:iam::123456789012:role/end",
                "Input": json.dumps({"InstanceIds": [host]}),
            },
        )  # fmt: skip


def bystanders(cloud: MotoCloud, standing: Standing, *, inside: bool = True) -> set[str]:
    """Things of others with nearly the same tags; `inside`: one in the fleet's own network too."""
    ec2 = cloud.client("ec2")
    near = [
        {FLEET: "f-10", STUDY: "toy"}, {FLEET: "f-", STUDY: "toy"}, {FLEET: "F-1"},
        {"harnessfleet": "f-1"}, {STUDY: "toy", "Name": "f-1"}, {"Name": "f-1-host-0"},
    ]  # fmt: skip
    found = set()
    for i, tags in enumerate(near):
        found.add(launch(cloud, tags))
        found.add(group(cloud, f"other-{i}", tags))
        made = ec2.create_volume(
            AvailabilityZone="us-east-1a", Size=1, TagSpecifications=named("volume", tags)
        )
        found.add(made["VolumeId"])
    if inside:
        found.add(launch(cloud, {"Name": "guest"}, SubnetId=standing.subnet))
    scheduler = cloud.client("scheduler")
    scheduler.create_schedule_group(Name="f-1-other", Tags=tag_list({FLEET: "f-10"}))
    cloud.client("iam").create_role(
        RoleName="f-1-near", Path="/harness/f-10/", AssumeRolePolicyDocument="{}"
    )
    return found | {"f-1-other", "f-1-near"}


def everything(cloud: MotoCloud) -> set[str]:
    """Ids and names of what there is of the kinds that bystanders have."""
    ec2 = cloud.client("ec2")
    running = [
        each["InstanceId"]
        for reservation in ec2.describe_instances()["Reservations"]
        for each in reservation["Instances"]
        if each["State"]["Name"] == "running"
    ]
    groups = [each["GroupId"] for each in ec2.describe_security_groups()["SecurityGroups"]]
    volumes = [each["VolumeId"] for each in ec2.describe_volumes()["Volumes"]]
    schedules = cloud.client("scheduler").list_schedule_groups()["ScheduleGroups"]
    roles = cloud.client("iam").list_roles()["Roles"]
    return {
        *running, *groups, *volumes, *(each["Name"] for each in schedules),
        *(each["RoleName"] for each in roles),
    }  # fmt: skip
