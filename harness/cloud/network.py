"""Parts of a network that must be taken apart before AWS lets them go."""

from __future__ import annotations

from typing import Any

from harness.cloud.clients import Aws, asking


def revoke_rules(aws: Aws, group: str) -> None:
    """Take every rule of a group away, in both directions; a group that is gone has none."""
    rules: dict[bool, list[str]] = {True: [], False: []}
    pages: Any = aws.ec2.get_paginator("describe_security_group_rules")
    with asking(f"to revoke the rules of {group}", where=aws.region):
        wanted = [{"Name": "group-id", "Values": [group]}]
        for page in pages.paginate(Filters=wanted):
            for rule in page["SecurityGroupRules"]:
                rules[bool(rule["IsEgress"])].append(rule["SecurityGroupRuleId"])
        if rules[False]:
            aws.ec2.revoke_security_group_ingress(GroupId=group, SecurityGroupRuleIds=rules[False])
        if rules[True]:
            aws.ec2.revoke_security_group_egress(GroupId=group, SecurityGroupRuleIds=rules[True])


def remove_gateway(aws: Aws, gateway: str) -> None:
    """Detach an internet gateway, then delete it."""
    found = aws.ec2.describe_internet_gateways(InternetGatewayIds=[gateway])["InternetGateways"]
    for attached in [each for one in found for each in one.get("Attachments", [])]:
        aws.ec2.detach_internet_gateway(InternetGatewayId=gateway, VpcId=attached.get("VpcId", ""))
    aws.ec2.delete_internet_gateway(InternetGatewayId=gateway)


def remove_table(aws: Aws, table: str) -> None:
    """Take a route table from its subnets, then delete it."""
    found = aws.ec2.describe_route_tables(RouteTableIds=[table])["RouteTables"]
    for each in [one for held in found for one in held.get("Associations", [])]:
        if not each.get("Main"):
            aws.ec2.disassociate_route_table(AssociationId=each.get("RouteTableAssociationId", ""))
    aws.ec2.delete_route_table(RouteTableId=table)
