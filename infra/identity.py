"""What a host may do: a role that reaches its fleet's part of the bucket and nothing else."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
from pulumi_aws import iam

from harness.fleet.admitted import AdmittedFleet
from harness.fleet.tags import tags
from infra import policies


@dataclass(frozen=True)
class HostIdentityArgs:
    """Whose hosts."""

    admitted: AdmittedFleet


class HostIdentity(pulumi.ComponentResource):
    """`profile`: name of the instance profile."""

    profile: pulumi.Output[str]

    def __init__(self, name: str, args: HostIdentityArgs, opts: pulumi.ResourceOptions) -> None:
        super().__init__("harness:infra:HostIdentity", name, None, opts)
        child = pulumi.ResourceOptions(parent=self)
        label = tags(args.admitted)
        path = policies.role_path(args.admitted)
        role = iam.Role(
            "host",
            path=path,
            description="Harness: hosts of one fleet",
            assume_role_policy=policies.host_trust().text(),
            tags=label,
            opts=child,
        )
        policy = iam.RolePolicy(
            "host-store",
            role=role.name,
            policy=policies.host_policy(args.admitted).text(),
            opts=child,
        )
        # A profile that is handed out has its permissions.
        profile = iam.InstanceProfile(
            "host",
            path=path,
            role=role.name,
            tags=label,
            opts=pulumi.ResourceOptions(parent=self, depends_on=[policy]),
        )
        self.profile = profile.name
        self.register_outputs({"profile": self.profile})
