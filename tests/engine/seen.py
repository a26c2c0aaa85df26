"""What a cloud holds, looked at past the engine."""

from __future__ import annotations

from typing import Any

from tests.engine.moto.server import MotoCloud

LIVING = ("pending", "running", "stopping", "stopped")


class Seen:
    """Reads one region of a cloud."""

    def __init__(self, cloud: MotoCloud) -> None:
        self._ec2, self._s3 = cloud.client("ec2"), cloud.client("s3")
        self._iam, self._scheduler = cloud.client("iam"), cloud.client("scheduler")

    def instances(self, *states: str) -> list[dict[str, Any]]:
        """Instances in these states (all living ones), by launch."""
        wanted = [{"Name": "instance-state-name", "Values": [*(states or LIVING)]}]
        found = [
            one
            for page in self._ec2.get_paginator("describe_instances").paginate(Filters=wanted)
            for reservation in page["Reservations"]
            for one in reservation["Instances"]
        ]
        return sorted(found, key=lambda one: str(_tags(one)))

    def living(self) -> list[str]:
        """Ids of living instances, by name."""
        return [one["InstanceId"] for one in self.instances()]

    def everything(self) -> dict[str, list[str]]:
        """Ids of all that a fleet may leave, by kind."""
        ec2 = self._ec2
        return {
            "instances": sorted(self.living()),
            "volumes": _ids(ec2.describe_volumes()["Volumes"], "VolumeId"),
            "interfaces": _ids(
                ec2.describe_network_interfaces()["NetworkInterfaces"], "NetworkInterfaceId"
            ),
            "addresses": _ids(ec2.describe_addresses()["Addresses"], "PublicIp"),
            "vpcs": _ids(ec2.describe_vpcs()["Vpcs"], "VpcId"),
            "subnets": _ids(ec2.describe_subnets()["Subnets"], "SubnetId"),
            "gateways": _ids(
                ec2.describe_internet_gateways()["InternetGateways"], "InternetGatewayId"
            ),
            "tables": _ids(ec2.describe_route_tables()["RouteTables"], "RouteTableId"),
            "endpoints": _ids(
                [
                    each
                    for each in ec2.describe_vpc_endpoints()["VpcEndpoints"]
                    if each["State"] != "deleted"
                ],
                "VpcEndpointId",
            ),
            "groups": _ids(ec2.describe_security_groups()["SecurityGroups"], "GroupId"),
            "keys": _ids(ec2.describe_key_pairs()["KeyPairs"], "KeyName"),
            "placement groups": _ids(
                ec2.describe_placement_groups()["PlacementGroups"], "GroupName"
            ),
            "roles": _ids(self._iam.list_roles()["Roles"], "RoleName"),
            "profiles": _ids(
                self._iam.list_instance_profiles()["InstanceProfiles"], "InstanceProfileName"
            ),
            "schedule groups": _ids(
                self._scheduler.list_schedule_groups()["ScheduleGroups"], "Name"
            ),
            "schedules": _ids(self._scheduler.list_schedules()["Schedules"], "Arn"),
            "buckets": _ids(self._s3.list_buckets()["Buckets"], "Name"),
        }

    def untagged(self) -> list[str]:
        """Things of an own network and fleet that carry no fleet tag and could."""
        ec2 = self._ec2
        found: list[str] = []
        for things, name in (
            (self.instances(), "InstanceId"),
            (ec2.describe_volumes()["Volumes"], "VolumeId"),
            (ec2.describe_key_pairs()["KeyPairs"], "KeyName"),
            (ec2.describe_placement_groups()["PlacementGroups"], "GroupName"),
            (ec2.describe_internet_gateways()["InternetGateways"], "InternetGatewayId"),
            (ec2.describe_vpc_endpoints()["VpcEndpoints"], "VpcEndpointId"),
            ([each for each in ec2.describe_vpcs()["Vpcs"] if not each["IsDefault"]], "VpcId"),
            (
                [e for e in ec2.describe_subnets()["Subnets"] if not e["DefaultForAz"]],
                "SubnetId",
            ),
            (
                [
                    each
                    for each in ec2.describe_security_groups()["SecurityGroups"]
                    if each["GroupName"] != "default"
                ],
                "GroupId",
            ),
        ):
            found += [each[name] for each in things if "HarnessFleet" not in _tags(each)]
        for role in self._iam.list_roles()["Roles"]:
            listed = self._iam.list_role_tags(RoleName=role["RoleName"])["Tags"]
            if "HarnessFleet" not in {tag["Key"] for tag in listed}:
                found.append(role["RoleName"])
        return found

    def volumes(self, instance: str) -> list[dict[str, Any]]:
        """Volumes attached to an instance."""
        wanted = [{"Name": "attachment.instance-id", "Values": [instance]}]
        return list(self._ec2.describe_volumes(Filters=wanted)["Volumes"])

    def shutdown_behaviour(self, instance: str) -> str:
        """What a shutdown inside the guest does."""
        name = "instanceInitiatedShutdownBehavior"
        said = self._ec2.describe_instance_attribute(InstanceId=instance, Attribute=name)
        return str(said["InstanceInitiatedShutdownBehavior"]["Value"])

    def rules(self, group: str) -> list[tuple[str, str, str]]:
        """(direction, protocol and ports, peer) of a security group's rules."""
        wanted = [{"Name": "group-id", "Values": [group]}]
        found = []
        for each in self._ec2.describe_security_group_rules(Filters=wanted)["SecurityGroupRules"]:
            peer = each.get("CidrIpv4") or each["ReferencedGroupInfo"]["GroupId"]
            what = each["IpProtocol"]
            if what != "-1":
                what += f" {each['FromPort']}-{each['ToPort']}"
            found.append(("out" if each["IsEgress"] else "in", what, peer))
        return found

    def schedule(self, group: str, name: str) -> dict[str, Any]:
        """One schedule as the scheduler stores it."""
        return dict(self._scheduler.get_schedule(GroupName=group, Name=name))

    def object(self, bucket: str, key: str) -> bytes:
        """An object's bytes."""
        return bytes(self._s3.get_object(Bucket=bucket, Key=key)["Body"].read())

    def bucket_settings(self, bucket: str) -> dict[str, Any]:
        """What protects a bucket, in words."""
        s3 = self._s3
        encryption = s3.get_bucket_encryption(Bucket=bucket)["ServerSideEncryptionConfiguration"]
        blocked = s3.get_public_access_block(Bucket=bucket)["PublicAccessBlockConfiguration"]
        (rule,) = s3.get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"]
        default = encryption["Rules"][0]["ApplyServerSideEncryptionByDefault"]
        return {
            "versioning": s3.get_bucket_versioning(Bucket=bucket)["Status"],
            "encryption": default["SSEAlgorithm"],
            "public": not all(blocked.values()),
            "incomplete uploads, days": rule["AbortIncompleteMultipartUpload"][
                "DaysAfterInitiation"
            ],
        }


def _ids(things: list[dict[str, Any]], name: str) -> list[str]:
    return sorted(str(each[name]) for each in things)


def _tags(thing: dict[str, Any]) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in thing.get("Tags") or []}
