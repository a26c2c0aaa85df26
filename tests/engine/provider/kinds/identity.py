"""Roles, their policies, instance profiles."""

from __future__ import annotations

import json

from tests.engine.provider.kind import Cloud, Kind, Values, aws_tags, found, patiently, seen_tags

_GONE = "NoSuchEntity"


def _role(cloud: Cloud, inputs: Values) -> str:
    made = cloud.client("iam").create_role(
        RoleName=inputs["name"],
        Path=inputs.get("path", "/"),
        Description=inputs.get("description", ""),
        AssumeRolePolicyDocument=inputs["assumeRolePolicy"],
        Tags=aws_tags(inputs.get("tags")),
    )
    return str(made["Role"]["RoleName"])


def _find_role(cloud: Cloud, name: str, _: Values) -> Values | None:
    iam = cloud.client("iam")
    said = found(lambda: iam.get_role(RoleName=name)["Role"], _GONE)
    if said is None:
        return None
    return {"name": name, "arn": said["Arn"], "tags": seen_tags(said.get("Tags"))}


def _no_role(cloud: Cloud, name: str, _: Values) -> None:
    iam = cloud.client("iam")
    patiently(lambda: iam.delete_role(RoleName=name), "DeleteConflict", gone=(_GONE,))


def _change_role(cloud: Cloud, name: str, old: Values, new: Values) -> None:
    iam = cloud.client("iam")
    if old["assumeRolePolicy"] != new["assumeRolePolicy"]:
        iam.update_assume_role_policy(RoleName=name, PolicyDocument=new["assumeRolePolicy"])
    removed = [key for key in old.get("tags") or {} if key not in (new.get("tags") or {})]
    if removed:
        iam.untag_role(RoleName=name, TagKeys=removed)
    iam.tag_role(RoleName=name, Tags=aws_tags(new.get("tags")))


def _policy(cloud: Cloud, inputs: Values) -> str:
    cloud.client("iam").put_role_policy(
        RoleName=inputs["role"], PolicyName=inputs["name"], PolicyDocument=inputs["policy"]
    )
    return f"{inputs['role']}:{inputs['name']}"


def _find_policy(cloud: Cloud, both: str, _: Values) -> Values | None:
    role, name = both.split(":")
    iam = cloud.client("iam")
    said = found(lambda: iam.get_role_policy(RoleName=role, PolicyName=name), _GONE)
    if said is None:
        return None
    document = said["PolicyDocument"]
    text = document if isinstance(document, str) else json.dumps(document, sort_keys=True)
    return {"name": name, "policy": text}


def _no_policy(cloud: Cloud, both: str, _: Values) -> None:
    role, name = both.split(":")
    iam = cloud.client("iam")
    patiently(lambda: iam.delete_role_policy(RoleName=role, PolicyName=name), gone=(_GONE,))


def _change_policy(cloud: Cloud, _: str, __: Values, new: Values) -> None:
    _policy(cloud, new)


def _profile(cloud: Cloud, inputs: Values) -> str:
    iam = cloud.client("iam")
    iam.create_instance_profile(
        InstanceProfileName=inputs["name"],
        Path=inputs.get("path", "/"),
        Tags=aws_tags(inputs.get("tags")),
    )
    iam.add_role_to_instance_profile(InstanceProfileName=inputs["name"], RoleName=inputs["role"])
    return str(inputs["name"])


def _find_profile(cloud: Cloud, name: str, _: Values) -> Values | None:
    iam = cloud.client("iam")
    said = found(
        lambda: iam.get_instance_profile(InstanceProfileName=name)["InstanceProfile"], _GONE
    )
    return {"name": name, "arn": said["Arn"]} if said else None


def _no_profile(cloud: Cloud, name: str, known: Values) -> None:
    iam = cloud.client("iam")
    patiently(
        lambda: iam.remove_role_from_instance_profile(
            InstanceProfileName=name, RoleName=known["role"]
        ),
        gone=(_GONE,),
    )
    patiently(lambda: iam.delete_instance_profile(InstanceProfileName=name), gone=(_GONE,))


def _change_profile(cloud: Cloud, name: str, _: Values, new: Values) -> None:
    cloud.client("iam").tag_instance_profile(
        InstanceProfileName=name, Tags=aws_tags(new.get("tags"))
    )


KINDS = (
    Kind(
        "aws:iam/role:Role",
        _role,
        _find_role,
        _no_role,
        _change_role,
        changeable=frozenset({"tags", "assumeRolePolicy"}),
        autoname="name",
    ),
    Kind(
        "aws:iam/rolePolicy:RolePolicy",
        _policy,
        _find_policy,
        _no_policy,
        _change_policy,
        changeable=frozenset({"policy"}),
        autoname="name",
    ),
    Kind(
        "aws:iam/instanceProfile:InstanceProfile",
        _profile,
        _find_profile,
        _no_profile,
        _change_profile,
        autoname="name",
    ),
)
