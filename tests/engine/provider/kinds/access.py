"""Security group, its rules, key pair, placement group."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tests.engine.provider.kind import (
    Cloud,
    Kind,
    Values,
    ec2_tags,
    found,
    patiently,
    retag,
    seen_tags,
)


def _group(cloud: Cloud, inputs: Values) -> str:
    ec2 = cloud.client("ec2")
    made = ec2.create_security_group(
        GroupName=inputs["name"],
        Description=inputs.get("description", "Managed by Pulumi"),
        VpcId=inputs["vpcId"],
        TagSpecifications=ec2_tags(inputs, "security-group"),
    )
    group = str(made["GroupId"])
    # The real provider starts from no rule at all.
    open_rules = ec2.describe_security_groups(GroupIds=[group])["SecurityGroups"][0]
    if open_rules["IpPermissionsEgress"]:
        ec2.revoke_security_group_egress(
            GroupId=group, IpPermissions=open_rules["IpPermissionsEgress"]
        )
    return group


def _find_group(cloud: Cloud, group: str, _: Values) -> Values | None:
    ec2 = cloud.client("ec2")
    said = found(
        lambda: ec2.describe_security_groups(GroupIds=[group])["SecurityGroups"],
        "InvalidGroup.NotFound",
    )
    if not said:
        return None
    one = said[0]
    return {"name": one["GroupName"], "vpcId": one["VpcId"], "tags": seen_tags(one.get("Tags"))}


def _no_group(cloud: Cloud, group: str, known: Values) -> None:
    ec2 = cloud.client("ec2")
    if known.get("revokeRulesOnDelete") and (seen := _rules(cloud, group)):
        for egress in (False, True):
            ids = [each["SecurityGroupRuleId"] for each in seen if each["IsEgress"] == egress]
            revoke = (
                ec2.revoke_security_group_egress if egress else ec2.revoke_security_group_ingress
            )
            if ids:
                revoke(GroupId=group, SecurityGroupRuleIds=ids)
    patiently(
        lambda: ec2.delete_security_group(GroupId=group),
        "DependencyViolation",
        gone=("InvalidGroup.NotFound",),
    )


def _rules(cloud: Cloud, group: str) -> list[Values]:
    ec2 = cloud.client("ec2")
    said = found(
        lambda: ec2.describe_security_group_rules(
            Filters=[{"Name": "group-id", "Values": [group]}]
        )["SecurityGroupRules"],
        "InvalidGroup.NotFound",
    )
    return said or []


def _bad_name(inputs: Values) -> Iterable[tuple[str, str]]:
    if str(inputs.get("name", "")).startswith("sg-"):
        yield "name", "invalid value for name (cannot begin with sg-)"


def _permission(inputs: Values) -> Values:
    permission: Values = {"IpProtocol": inputs["ipProtocol"]}
    if "fromPort" in inputs:
        permission |= {"FromPort": int(inputs["fromPort"]), "ToPort": int(inputs["toPort"])}
    about = {"Description": inputs["description"]} if "description" in inputs else {}
    if "cidrIpv4" in inputs:
        permission["IpRanges"] = [{"CidrIp": inputs["cidrIpv4"], **about}]
    if "referencedSecurityGroupId" in inputs:
        permission["UserIdGroupPairs"] = [{"GroupId": inputs["referencedSecurityGroupId"], **about}]
    return permission


def _rule(direction: str) -> Callable[[Cloud, Values], str]:
    def create(cloud: Cloud, inputs: Values) -> str:
        act = getattr(cloud.client("ec2"), f"authorize_security_group_{direction}")
        made = act(
            GroupId=inputs["securityGroupId"],
            IpPermissions=[_permission(inputs)],
            TagSpecifications=ec2_tags(inputs, "security-group-rule"),
        )
        return str(made["SecurityGroupRules"][0]["SecurityGroupRuleId"])

    return create


def _find_rule(cloud: Cloud, rule: str, known: Values) -> Values | None:
    for each in _rules(cloud, known["securityGroupId"]):
        if each["SecurityGroupRuleId"] == rule:
            return {"cidrIpv4": each["CidrIpv4"]} if "CidrIpv4" in each else {}
    return None


def _no_rule(direction: str) -> Callable[[Cloud, str, Values], None]:
    def delete(cloud: Cloud, rule: str, known: Values) -> None:
        act = getattr(cloud.client("ec2"), f"revoke_security_group_{direction}")
        patiently(
            lambda: act(GroupId=known["securityGroupId"], SecurityGroupRuleIds=[rule]),
            gone=(
                "InvalidGroup.NotFound",
                "InvalidPermission.NotFound",
                "InvalidSecurityGroupRuleId.NotFound",
            ),
        )

    return delete


def _change_rule(cloud: Cloud, rule: str, old: Values, new: Values) -> None:
    if old.get("cidrIpv4") != new.get("cidrIpv4"):
        cloud.client("ec2").modify_security_group_rules(
            GroupId=new["securityGroupId"],
            SecurityGroupRules=[
                {
                    "SecurityGroupRuleId": rule,
                    "SecurityGroupRule": {
                        "IpProtocol": new["ipProtocol"],
                        "FromPort": int(new.get("fromPort", -1)),
                        "ToPort": int(new.get("toPort", -1)),
                        "CidrIpv4": new["cidrIpv4"],
                        "Description": new.get("description", ""),
                    },
                }
            ],
        )
    retag(cloud, rule, old, new)


def _key(cloud: Cloud, inputs: Values) -> str:
    cloud.client("ec2").import_key_pair(
        KeyName=inputs["keyName"],
        PublicKeyMaterial=inputs["publicKey"].encode(),
        TagSpecifications=ec2_tags(inputs, "key-pair"),
    )
    return str(inputs["keyName"])


def _find_key(cloud: Cloud, name: str, _: Values) -> Values | None:
    ec2 = cloud.client("ec2")
    said = found(
        lambda: ec2.describe_key_pairs(KeyNames=[name])["KeyPairs"], "InvalidKeyPair.NotFound"
    )
    return {"keyName": name, "keyPairId": said[0]["KeyPairId"]} if said else None


def _no_key(cloud: Cloud, name: str, _: Values) -> None:
    cloud.client("ec2").delete_key_pair(KeyName=name)


def _retag_key(cloud: Cloud, name: str, old: Values, new: Values) -> None:
    known = _find_key(cloud, name, new)
    assert known is not None
    retag(cloud, known["keyPairId"], old, new)


def _together(cloud: Cloud, inputs: Values) -> str:
    cloud.client("ec2").create_placement_group(
        GroupName=inputs["name"],
        Strategy=inputs["strategy"],
        TagSpecifications=ec2_tags(inputs, "placement-group"),
    )
    return str(inputs["name"])


def _find_together(cloud: Cloud, name: str, _: Values) -> Values | None:
    ec2 = cloud.client("ec2")
    said = found(
        lambda: ec2.describe_placement_groups(GroupNames=[name])["PlacementGroups"],
        "InvalidPlacementGroup.Unknown",
    )
    return {"name": name, "placementGroupId": said[0].get("GroupId", "")} if said else None


def _no_together(cloud: Cloud, name: str, _: Values) -> None:
    ec2 = cloud.client("ec2")
    patiently(
        lambda: ec2.delete_placement_group(GroupName=name),
        "InvalidPlacementGroup.InUse",
        gone=("InvalidPlacementGroup.Unknown",),
    )


def _retag_together(cloud: Cloud, name: str, old: Values, new: Values) -> None:
    known = _find_together(cloud, name, new)
    if known and known["placementGroupId"]:
        retag(cloud, known["placementGroupId"], old, new)


_IN_PLACE = frozenset({"tags", "cidrIpv4", "description"})
KINDS = (
    Kind(
        "aws:ec2/securityGroup:SecurityGroup",
        _group,
        _find_group,
        _no_group,
        retag,
        changeable=frozenset({"tags", "revokeRulesOnDelete"}),
        autoname="name",
        refuse=_bad_name,
    ),
    Kind(
        "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule",
        _rule("ingress"),
        _find_rule,
        _no_rule("ingress"),
        _change_rule,
        changeable=_IN_PLACE,
    ),
    Kind(
        "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule",
        _rule("egress"),
        _find_rule,
        _no_rule("egress"),
        _change_rule,
        changeable=_IN_PLACE,
    ),
    Kind("aws:ec2/keyPair:KeyPair", _key, _find_key, _no_key, _retag_key, autoname="keyName"),
    Kind(
        "aws:ec2/placementGroup:PlacementGroup",
        _together,
        _find_together,
        _no_together,
        _retag_together,
        autoname="name",
    ),
)
