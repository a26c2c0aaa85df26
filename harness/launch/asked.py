"""What admission asks of AWS, each once, the answers pinned in the admission."""

from __future__ import annotations

import re
from typing import NamedTuple

from harness.cloud.clients import Aws, asking
from harness.errors import BadInput, Refused
from harness.plan.hosts import AwsHosts

IMAGES = "/aws/service/deeplearning/ami/x86_64"
"""Public parameters of the Deep Learning AMIs (DLAMI developer guide, 'Find a DLAMI ID')."""


class Image(NamedTuple):
    """A machine image as it was when it was asked for."""

    id: str
    name: str


def account_id(aws: Aws) -> str:
    """The account that will be billed (STS GetCallerIdentity)."""
    with asking("for the account"):
        return str(aws.session.client("sts").get_caller_identity()["Account"])


def image(aws: Aws, kind: str) -> Image:
    """The newest image of a Deep Learning AMI type. Raises BadInput, listing what exists."""
    ssm = aws.session.client("ssm")
    with asking("for the machine image"):
        try:
            answer = ssm.get_parameter(Name=f"{IMAGES}/{kind}/latest/ami-id")
        except ssm.exceptions.ParameterNotFound:
            raise BadInput(
                f"no image '{kind}' exists (there are: {', '.join(_kinds(aws)) or 'none'})",
                where="plan.json#/hosts/aws/image",
            ) from None
        found = str(answer["Parameter"]["Value"])
        described = aws.ec2.describe_images(ImageIds=[found])["Images"]
    if not described:
        raise Refused(f"the image {found} of '{kind}' is not there", where="AWS")
    return Image(found, str(described[0].get("Name") or found))


def _kinds(aws: Aws) -> list[str]:
    pages = aws.session.client("ssm").get_paginator("get_parameters_by_path")
    found = set()
    for page in pages.paginate(Path=IMAGES, Recursive=True):
        for parameter in page["Parameters"]:
            match = re.fullmatch(rf"{IMAGES}/([^/]+)/latest/ami-id", str(parameter.get("Name")))
            if match:
                found.add(match[1])
    return sorted(found)


def offered(aws: Aws, hosts: AwsHosts) -> dict[str, frozenset[str]]:
    """The zones that offer each type of the plan: offered, which is not available."""
    pages = aws.ec2.get_paginator("describe_instance_type_offerings")
    found: dict[str, set[str]] = {each: set() for each in hosts.types}
    with asking("for the zones that offer these types"):
        for page in pages.paginate(
            LocationType="availability-zone",
            Filters=[{"Name": "instance-type", "Values": list(hosts.types)}],
        ):
            for row in page["InstanceTypeOfferings"]:
                found.setdefault(str(row["InstanceType"]), set()).add(str(row["Location"]))
    return {each: frozenset(zones) for each, zones in found.items()}


def bucket_present(aws: Aws, bucket: str, account: str) -> bool:
    """Whether the bucket is there and ours (HeadBucket). Raises Refused for someone else's."""
    from botocore.exceptions import ClientError

    with asking(f"for the bucket {bucket}"):
        try:
            aws.session.client("s3").head_bucket(Bucket=bucket, ExpectedBucketOwner=account)
        except ClientError as error:
            code = str(error.response.get("Error", {}).get("Code"))
            if code in ("404", "NoSuchBucket"):
                return False
            if code in ("403", "AccessDenied", "301"):
                raise Refused(
                    f"the bucket is not usable from this account and region ({code})",
                    where=f"s3://{bucket}",
                    next_command="name another one in /store/bucket (a new plan)",
                ) from None
            raise
    return True
