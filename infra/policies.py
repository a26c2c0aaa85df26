"""IAM documents and schedule bodies, pure functions of the admitted fleet.

Typed, because neither the engine nor the provider notices a misspelled element: AWS refuses it
after hosts are up (IAM user guide, 'IAM JSON policy element reference').
"""

from __future__ import annotations

import json
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, StringConstraints
from pydantic.alias_generators import to_pascal

from harness.clock import parse_utc
from harness.fleet import places
from harness.fleet.admitted import AdmittedFleet
from harness.strict import Model

Action = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]+:[A-Z][A-Za-z]+$")]
Arn = Annotated[str, StringConstraints(pattern=r"^arn:aws:[a-z0-9]+:[a-z0-9-]*:([0-9]{12})?:\S+$")]
Service = Literal["ec2.amazonaws.com", "scheduler.amazonaws.com"]
ConditionKey = Literal[
    "aws:SourceAccount", "aws:SourceArn", "s3:prefix", "aws:ResourceTag/HarnessFleet"
]
Conditions = dict[
    Literal["StringEquals", "StringLike", "ArnLike"], dict[ConditionKey, str | tuple[str, ...]]
]

TERMINATE = "arn:aws:scheduler:::aws-sdk:ec2:terminateInstances"
"""EventBridge Scheduler's universal target (scheduler user guide, 'Using universal targets')."""


class Element(Model):
    """Part of a policy; IAM's names begin with a capital."""

    model_config = ConfigDict(alias_generator=to_pascal)


class Trusted(Element):
    """Who may take a role."""

    service: Service


class TrustStatement(Element):
    """One statement of a trust policy."""

    effect: Literal["Allow"] = "Allow"
    principal: Trusted
    action: Literal["sts:AssumeRole"] = "sts:AssumeRole"
    condition: Conditions | None = None


class Permission(Element):
    """One statement of a role's own policy."""

    effect: Literal["Allow"] = "Allow"
    action: Annotated[tuple[Action, ...], Field(min_length=1)]
    resource: Annotated[tuple[Arn, ...], Field(min_length=1)]
    condition: Conditions | None = None


class Policy(Element):
    """A document."""

    version: Literal["2012-10-17"] = "2012-10-17"
    statement: tuple[TrustStatement | Permission, ...]

    def text(self) -> str:
        """As IAM takes it."""
        return json.dumps(self.to_json(), sort_keys=True)


def host_trust() -> Policy:
    """Instances take the host role."""
    return Policy(statement=(TrustStatement(principal=Trusted(service="ec2.amazonaws.com")),))


def host_policy(admitted: AdmittedFleet) -> Policy:
    """What a host may do: its fleet's records and the store's objects, and to list those."""
    folders = (places.objects_folder(admitted), places.fleet_folder(admitted))
    bucket = f"arn:aws:s3:::{admitted.bucket}"
    objects = Permission(
        action=(
            "s3:AbortMultipartUpload",
            "s3:GetObject",
            "s3:GetObjectVersion",
            "s3:ListMultipartUploadParts",
            "s3:PutObject",
        ),
        resource=tuple(f"{bucket}/{folder}*" for folder in folders),
    )
    # A statement of its own: the prefix condition does not exist for object actions.
    listing = Permission(
        action=("s3:ListBucket",),
        resource=(bucket,),
        condition={"StringLike": {"s3:prefix": tuple(f"{folder}*" for folder in folders)}},
    )
    return Policy(statement=(objects, listing))


def deadline_trust(admitted: AdmittedFleet) -> Policy:
    """The scheduler takes the deadline's role, only for schedules of this account's group."""
    group = f"arn:aws:scheduler:{admitted.region}:{admitted.account}:schedule-group/"
    return Policy(
        statement=(
            TrustStatement(
                principal=Trusted(service="scheduler.amazonaws.com"),
                condition={
                    "StringEquals": {
                        "aws:SourceAccount": admitted.account,
                        "aws:SourceArn": group + schedule_group(admitted),
                    }
                },
            ),
        )
    )


def deadline_policy(admitted: AdmittedFleet) -> Policy:
    """It may terminate this fleet's hosts and nothing else."""
    return Policy(
        statement=(
            Permission(
                action=("ec2:TerminateInstances",),
                resource=(f"arn:aws:ec2:{admitted.region}:{admitted.account}:instance/*",),
                condition={"StringEquals": {"aws:ResourceTag/HarnessFleet": admitted.fleet}},
            ),
        )
    )


def role_path(admitted: AdmittedFleet) -> str:
    """Roles and profiles of a fleet lie under a path, by which IAM lists them."""
    return f"/harness/{admitted.fleet}/"


def schedule_group(admitted: AdmittedFleet) -> str:
    """Name of the group: schedules carry no tags, their group does."""
    return admitted.fleet


def schedule_name(slot: int) -> str:
    """Name of one host's schedule inside the fleet's group."""
    return f"host-{slot}"


def schedule_expression(admitted: AdmittedFleet) -> str:
    """`at(...)` in UTC, whole seconds (scheduler user guide, 'One-time schedules')."""
    return parse_utc(admitted.deadline_utc).strftime("at(%Y-%m-%dT%H:%M:%S)")


def schedule_input(instance_id: str) -> str:
    """Request of the universal target: TerminateInstances' own parameters."""
    return json.dumps({"InstanceIds": [instance_id]})


def acknowledgement(admitted: AdmittedFleet, slot: int, instance_id: str) -> str:
    """The record that a host waits for: its outer deadline exists."""
    return json.dumps(
        {
            "schema": "harness/acknowledged/1",
            "fleet": admitted.fleet,
            "slot": slot,
            "instance_id": instance_id,
            "schedule": f"{schedule_group(admitted)}/{schedule_name(slot)}",
            "deadline_utc": admitted.deadline_utc,
        },
        sort_keys=True,
    )
