"""The outer deadline: one schedule for each host, which works without operator and guest."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
from pulumi_aws import iam, s3, scheduler

from harness.fleet import places
from harness.fleet.admitted import AdmittedFleet
from harness.fleet.tags import tags
from infra import policies


@dataclass(frozen=True)
class DeadlinesArgs:
    """Whose deadlines."""

    admitted: AdmittedFleet


class Deadlines(pulumi.ComponentResource):
    """The fleet's tagged schedule group, and the role with which its schedules terminate."""

    group: pulumi.Output[str]
    role_arn: pulumi.Output[str]

    def __init__(self, name: str, args: DeadlinesArgs, opts: pulumi.ResourceOptions) -> None:
        super().__init__("harness:infra:Deadlines", name, None, opts)
        child = pulumi.ResourceOptions(parent=self)
        label = tags(args.admitted)
        group = scheduler.ScheduleGroup(
            "deadlines", name=policies.schedule_group(args.admitted), tags=label, opts=child
        )
        role = iam.Role(
            "deadline",
            path=policies.role_path(args.admitted),
            description="Harness: ends the hosts of one fleet at its deadline",
            assume_role_policy=policies.deadline_trust(args.admitted).text(),
            tags=label,
            opts=child,
        )
        iam.RolePolicy(
            "deadline-terminate",
            role=role.name,
            policy=policies.deadline_policy(args.admitted).text(),
            opts=child,
        )
        self.group = group.name
        self.role_arn = role.arn
        self.register_outputs({"group": self.group, "role_arn": self.role_arn})


@dataclass(frozen=True)
class HostDeadlineArgs:
    """Which host, ended by what."""

    admitted: AdmittedFleet
    slot: int
    instance_id: pulumi.Output[str]
    group: pulumi.Output[str]
    role_arn: pulumi.Output[str]
    bucket: pulumi.Output[str]
    on_failure: pulumi.ErrorHook


class HostDeadline(pulumi.ComponentResource):
    """One host's schedule, and then the record that its guest waits for."""

    schedule: pulumi.Output[str]

    def __init__(self, name: str, args: HostDeadlineArgs, opts: pulumi.ResourceOptions) -> None:
        super().__init__("harness:infra:HostDeadline", name, None, opts)
        failing = pulumi.ResourceHookBinding(on_error=[args.on_failure])
        schedule = scheduler.Schedule(
            f"deadline-{args.slot}",
            name=policies.schedule_name(args.slot),
            group_name=args.group,
            description="Harness: terminates one host at its fleet's deadline",
            schedule_expression=policies.schedule_expression(args.admitted),
            schedule_expression_timezone="UTC",
            flexible_time_window={"mode": "OFF"},
            action_after_completion="DELETE",
            target={
                "arn": policies.TERMINATE,
                "role_arn": args.role_arn,
                "input": args.instance_id.apply(policies.schedule_input),
                "retry_policy": {
                    "maximum_event_age_in_seconds": 86400,
                    "maximum_retry_attempts": 185,
                },
            },
            opts=pulumi.ResourceOptions(parent=self, hooks=failing),
        )
        # Kept: it is a record of the fleet.
        s3.BucketObjectv2(
            f"acknowledged-{args.slot}",
            bucket=args.bucket,
            key=places.acknowledged(args.admitted, args.slot),
            content=args.instance_id.apply(
                lambda known: policies.acknowledgement(args.admitted, args.slot, known)
            ),
            content_type="application/json",
            opts=pulumi.ResourceOptions(
                parent=self, depends_on=[schedule], hooks=failing, retain_on_delete=True
            ),
        )
        self.schedule = schedule.name
        self.register_outputs({"schedule": self.schedule})
