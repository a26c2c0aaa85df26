"""A stack's host is lost only by AWS's own word: terminated, and every disk of it NotFound."""

from __future__ import annotations

import boto3
import pytest

from harness.cloud import observe
from harness.cloud.clients import Aws
from harness.cloud.gone import proof_of_loss
from harness.errors import Refused


def launched(*, disk_stays: bool = False) -> str:
    """An instance with one disk, which ends with it or stays."""
    ec2 = boto3.client("ec2", region_name="us-east-1")
    image = ec2.describe_images(Owners=["self"])["Images"][0]["ImageId"]
    made = ec2.run_instances(
        ImageId=image,
        MinCount=1,
        MaxCount=1,
        BlockDeviceMappings=[
            {
                "DeviceName": "/dev/sda1",
                "Ebs": {"VolumeSize": 8, "DeleteOnTermination": not disk_stays},
            }
        ],
    )
    return made["Instances"][0]["InstanceId"]


def disks_of(aws: Aws, instance: str) -> tuple[str, ...]:
    seen = observe.instances_by_id(aws, [instance])[instance]
    assert seen is not None
    assert seen.volumes
    return seen.volumes


def end(instance: str) -> None:
    boto3.client("ec2", region_name="us-east-1").terminate_instances(InstanceIds=[instance])


def test_terminated_and_every_disk_not_found_is_proof(aws: Aws) -> None:
    host = launched()
    disks = disks_of(aws, host)
    end(host)
    proof = proof_of_loss(aws, host, disks)
    assert f"{host} is terminated" in proof
    assert f"{', '.join(disks)} NotFound" in proof


def test_a_host_that_runs_is_not_lost(aws: Aws) -> None:
    host = launched()
    with pytest.raises(Refused, match="says 'running', which is no proof"):
        proof_of_loss(aws, host, disks_of(aws, host))


def test_a_host_whose_disk_is_there_is_not_lost(aws: Aws) -> None:
    host = launched(disk_stays=True)
    disks = disks_of(aws, host)
    end(host)
    with pytest.raises(Refused, match=f"its disk {disks[0]} is still there"):
        proof_of_loss(aws, host, disks)


def test_a_host_that_is_not_shown_is_not_lost(aws: Aws) -> None:
    with pytest.raises(Refused, match="does not show it"):
        proof_of_loss(aws, "i-0123456789abcdef0", ("vol-0123456789abcdef0",))
