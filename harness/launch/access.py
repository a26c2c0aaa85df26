"""Changing who may open SSH connections, without making the next `up` a change."""

from __future__ import annotations

from typing import Any

from harness.cloud.clients import asking
from harness.launch.drive import Drive

SSH = 22


def admit_from(drive: Drive, cidr: str) -> int:
    """Change the SSH rules of the fleet's security group and the configuration to `cidr`.

    Returns how many rules changed. The configuration is written first: were this killed in
    between, the same command changes the rule, and `pulumi up` would do it too. The engine
    refreshes before it compares, so that it sees the rule as it is.
    """
    drive.change(operator_cidr=cidr)
    changed = 0
    for rule in _rules(drive):
        if rule.get("CidrIpv4") == cidr:
            continue
        with asking("to change the SSH rule", where=drive.aws.region):
            drive.aws.ec2.modify_security_group_rules(
                GroupId=str(rule["GroupId"]),
                SecurityGroupRules=[
                    {
                        "SecurityGroupRuleId": str(rule["SecurityGroupRuleId"]),
                        "SecurityGroupRule": {
                            "IpProtocol": "tcp",
                            "FromPort": SSH,
                            "ToPort": SSH,
                            "CidrIpv4": cidr,
                            "Description": str(rule.get("Description", "SSH from the operator")),
                        },
                    }
                ],
            )
        changed += 1
    return changed


def _rules(drive: Drive) -> list[dict[str, Any]]:
    """SSH rules by address of the group that the stack made."""
    outputs = drive.engine.outputs()
    if outputs is None or outputs.fleet != drive.admitted.fleet:
        return []
    pages = drive.aws.ec2.get_paginator("describe_security_group_rules")
    with asking("for the SSH rules", where=drive.aws.region):
        found: list[dict[str, Any]] = [
            dict(rule)
            for page in pages.paginate(
                Filters=[{"Name": "group-id", "Values": [outputs.security_group]}]
            )
            for rule in page["SecurityGroupRules"]
        ]
    return [
        rule
        for rule in found
        if not rule.get("IsEgress") and rule.get("FromPort") == SSH and rule.get("CidrIpv4")
    ]
