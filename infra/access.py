"""Who may reach the hosts: the operator's address by SSH, and the hosts each other."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
from pulumi_aws import ec2, vpc

from harness.fleet.admitted import AdmittedFleet
from harness.fleet.tags import tags

SSH_PORT = 22


@dataclass(frozen=True)
class AccessArgs:
    """Whom to let in, and the network of it."""

    admitted: AdmittedFleet
    vpc_id: pulumi.Output[str]


class Access(pulumi.ComponentResource):
    """`security_group` (its id) and `key_name` of the login key."""

    security_group: pulumi.Output[str]
    key_name: pulumi.Output[str]

    def __init__(self, name: str, args: AccessArgs, opts: pulumi.ResourceOptions) -> None:
        super().__init__("harness:infra:Access", name, None, opts)
        child = pulumi.ResourceOptions(parent=self)
        label = tags(args.admitted)
        # The description cannot be changed later, and a name may not begin with 'sg-'.
        group = ec2.SecurityGroup(
            "hosts",
            description="Harness: the hosts of one fleet",
            vpc_id=args.vpc_id,
            revoke_rules_on_delete=True,
            tags=label,
            opts=child,
        )
        vpc.SecurityGroupIngressRule(
            "operator-ssh",
            security_group_id=group.id,
            description="SSH from the operator",
            ip_protocol="tcp",
            from_port=SSH_PORT,
            to_port=SSH_PORT,
            cidr_ipv4=args.admitted.operator_cidr,
            tags=label,
            opts=child,
        )
        vpc.SecurityGroupIngressRule(
            "each-other",
            security_group_id=group.id,
            description="All between the hosts of this fleet",
            ip_protocol="-1",
            referenced_security_group_id=group.id,
            tags=label,
            opts=child,
        )
        vpc.SecurityGroupEgressRule(
            "outward",
            security_group_id=group.id,
            description="All outward",
            ip_protocol="-1",
            cidr_ipv4="0.0.0.0/0",
            tags=label,
            opts=child,
        )
        key = ec2.KeyPair(
            "login", public_key=args.admitted.login_public_key, tags=label, opts=child
        )
        self.security_group = group.id
        self.key_name = key.key_name
        self.register_outputs({"security_group": self.security_group, "key_name": self.key_name})
