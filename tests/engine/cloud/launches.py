"""What tests put into a cloud by themselves: hosts as a fleet has them, and bystanders."""

from __future__ import annotations

from typing import Any

from harness.fleet.tags import ATTEMPT, FLEET, SLOT, STUDY
from tests.engine.moto.server import REGION, MotoCloud

Specification = dict[str, Any]


def tag_list(tags: dict[str, str]) -> list[dict[str, str]]:
    """AWS's form of tags."""
    return [{"Key": name, "Value": value} for name, value in tags.items()]


def fleet_tags(fleet: str = "f-1", slot: int | None = None) -> dict[str, str]:
    """The tags by which a fleet's things are found."""
    tags = {"Name": fleet, STUDY: "toy", FLEET: fleet, ATTEMPT: "1.0"}
    return tags if slot is None else {**tags, SLOT: str(slot)}


def subnet_of(cloud: MotoCloud, zone: str, region: str = REGION) -> str:
    """The default subnet of a zone."""
    found = cloud.client("ec2", region).describe_subnets(
        Filters=[{"Name": "availability-zone", "Values": [zone]}]
    )
    return str(found["Subnets"][0]["SubnetId"])


def group(cloud: MotoCloud, name: str, tags: dict[str, str], region: str = REGION) -> str:
    """A security group of the default network."""
    made = cloud.client("ec2", region).create_security_group(
        GroupName=name,
        Description="test",
        TagSpecifications=[{"ResourceType": "security-group", "Tags": tag_list(tags)}],
    )
    return str(made["GroupId"])


def launch(
    cloud: MotoCloud,
    tags: dict[str, str],
    *,
    zone: str = f"{REGION}a",
    region: str = REGION,
    **more: Any,
) -> str:
    """One host with an encrypted gp3 root volume; returns its id."""
    fields: Specification = {
        "ImageId": "ami-0123456789abcdef0",
        "InstanceType": "g6e.xlarge",
        "MinCount": 1,
        "MaxCount": 1,
        "SubnetId": subnet_of(cloud, zone, region),
        "BlockDeviceMappings": [
            {
                "DeviceName": "/dev/sda1",
                "Ebs": {
                    "VolumeSize": 100,
                    "VolumeType": "gp3",
                    "Iops": 5000,
                    "Throughput": 500,
                    "Encrypted": True,
                    "DeleteOnTermination": True,
                },
            }
        ],
        "TagSpecifications": [
            {"ResourceType": kind, "Tags": tag_list(tags)} for kind in ("instance", "volume")
        ],
        **more,
    }
    made = cloud.client("ec2", region).run_instances(**fields)
    return str(made["Instances"][0]["InstanceId"])
