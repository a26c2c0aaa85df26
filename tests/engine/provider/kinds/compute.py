"""Instances."""

from __future__ import annotations

import time
from collections.abc import Iterable

from tests.engine.provider.kind import (
    WAIT_S,
    Cloud,
    HalfMade,
    Kind,
    Values,
    aws_tags,
    ec2_tags,
    found,
    patiently,
    retag,
    seen_tags,
)

_GONE = "InvalidInstanceID.NotFound"
_VOLUME_TYPES = ("standard", "gp2", "gp3", "io1", "io2", "sc1", "st1")


def _refused(inputs: Values) -> Iterable[tuple[str, str]]:
    """As the real provider's own schema and plan do."""
    if inputs.get("userData") is not None and inputs.get("userDataBase64") is not None:
        yield "userData", "conflicts with userDataBase64"
    root = inputs.get("rootBlockDevice")
    root = root if isinstance(root, dict) else {}
    kind = root.get("volumeType", "gp2")
    if kind not in _VOLUME_TYPES:
        yield "rootBlockDevice.volumeType", f"expected one of {_VOLUME_TYPES}, got {kind}"
    elif "iops" in root and kind not in ("gp3", "io1", "io2"):
        yield "rootBlockDevice.iops", f"'iops' is not for volumes of the type {kind}"
    if "throughput" in root and kind != "gp3":
        yield "rootBlockDevice.throughput", f"'throughput' is not for volumes of the type {kind}"
    if root.get("tags") and inputs.get("volumeTags"):
        yield "volumeTags", "conflicts with rootBlockDevice.tags"


def _root(inputs: Values) -> list[Values]:
    root = inputs.get("rootBlockDevice") or {}
    names = {
        "volumeType": "VolumeType",
        "encrypted": "Encrypted",
        "volumeSize": "VolumeSize",
        "iops": "Iops",
        "throughput": "Throughput",
        "deleteOnTermination": "DeleteOnTermination",
    }
    whole = ("volumeSize", "iops", "throughput")
    ebs = {
        names[name]: int(value) if name in whole else value
        for name, value in root.items()
        if name in names
    }
    return [{"DeviceName": "/dev/sda1", "Ebs": ebs}] if ebs else []


def _launch(cloud: Cloud, inputs: Values) -> str:
    ec2 = cloud.client("ec2")
    metadata = inputs.get("metadataOptions") or {}
    request: Values = {
        "ImageId": inputs["ami"],
        "InstanceType": inputs["instanceType"],
        "MinCount": 1,
        "MaxCount": 1,
        "KeyName": inputs.get("keyName"),
        "UserData": inputs.get("userData"),
        "InstanceInitiatedShutdownBehavior": inputs.get("instanceInitiatedShutdownBehavior"),
        "DisableApiTermination": inputs.get("disableApiTermination"),
        "IamInstanceProfile": {"Name": inputs["iamInstanceProfile"]}
        if "iamInstanceProfile" in inputs
        else None,
        "Placement": {"GroupName": inputs["placementGroup"]}
        if inputs.get("placementGroup")
        else None,
        "MetadataOptions": {
            "HttpTokens": metadata["httpTokens"],
            "HttpEndpoint": metadata.get("httpEndpoint", "enabled"),
            "HttpPutResponseHopLimit": int(metadata.get("httpPutResponseHopLimit", 1)),
        }
        if "httpTokens" in metadata
        else None,
        "BlockDeviceMappings": _root(inputs),
        "NetworkInterfaces": [
            {
                "DeviceIndex": 0,
                "SubnetId": inputs["subnetId"],
                "Groups": inputs.get("vpcSecurityGroupIds", []),
                "AssociatePublicIpAddress": inputs.get("associatePublicIpAddress", False),
            }
        ],
        "TagSpecifications": [
            *ec2_tags(inputs, "instance"),
            *ec2_tags(inputs.get("rootBlockDevice") or {}, "volume"),
        ],
    }
    made = ec2.run_instances(**{name: each for name, each in request.items() if each is not None})
    instance = str(made["Instances"][0]["InstanceId"])
    _until_running(cloud, instance)
    return instance


def _until_running(cloud: Cloud, instance: str) -> None:
    """Raises HalfMade when it does not come up."""
    until = time.monotonic() + WAIT_S
    while time.monotonic() < until:
        one = _describe(cloud, instance)
        state = one["State"]["Name"] if one else "not seen yet"
        if state == "running":
            return
        if state in ("terminated", "shutting-down", "stopped", "stopping"):
            reason = (one or {}).get("StateReason") or {}
            raise HalfMade(
                instance,
                f"waiting for EC2 Instance ({instance}) create: unexpected state '{state}', wanted "
                f"target 'running'. last error: {reason.get('Code')}: {reason.get('Message')}",
            )
        time.sleep(0.1)
    raise HalfMade(instance, f"waiting for EC2 Instance ({instance}) create: timeout")


def _describe(cloud: Cloud, instance: str) -> Values | None:
    ec2 = cloud.client("ec2")
    said = found(lambda: ec2.describe_instances(InstanceIds=[instance]), _GONE)
    if not said or not said["Reservations"]:
        return None
    one: Values = said["Reservations"][0]["Instances"][0]
    return one


def _look(cloud: Cloud, instance: str, _: Values) -> Values | None:
    one = _describe(cloud, instance)
    if one is None or one["State"]["Name"] == "terminated":
        return None
    return {
        "instanceState": one["State"]["Name"],
        "instanceType": one["InstanceType"],
        "privateIp": one.get("PrivateIpAddress", ""),
        "publicIp": one.get("PublicIpAddress", ""),
        "availabilityZone": one["Placement"]["AvailabilityZone"],
        "tags": seen_tags(one.get("Tags")),
        "arn": f"arn:aws:ec2:{cloud.region}:123456789012:instance/{instance}",
    }


def _end(cloud: Cloud, instance: str, _: Values) -> None:
    ec2 = cloud.client("ec2")
    patiently(lambda: ec2.terminate_instances(InstanceIds=[instance]), gone=(_GONE,))
    until = time.monotonic() + WAIT_S
    while (one := _describe(cloud, instance)) and one["State"]["Name"] != "terminated":
        if time.monotonic() > until:
            raise TimeoutError(f"waiting for EC2 Instance ({instance}) delete: timeout")
        time.sleep(0.1)


def _change(cloud: Cloud, instance: str, old: Values, new: Values) -> None:
    retag(cloud, instance, old, new)
    before = (old.get("rootBlockDevice") or {}).get("tags")
    after = (new.get("rootBlockDevice") or {}).get("tags")
    if before != after and (one := _describe(cloud, instance)):
        for mapping in one["BlockDeviceMappings"]:
            cloud.client("ec2").create_tags(
                Resources=[mapping["Ebs"]["VolumeId"]], Tags=aws_tags(after)
            )


KINDS = (
    Kind(
        "aws:ec2/instance:Instance",
        _launch,
        _look,
        _end,
        _change,
        changeable=frozenset(
            {
                "tags",
                "rootBlockDevice",
                "userData",
                "vpcSecurityGroupIds",
                "disableApiTermination",
                "instanceInitiatedShutdownBehavior",
                "metadataOptions",
                "iamInstanceProfile",
            }
        ),
        refuse=_refused,
    ),
)
