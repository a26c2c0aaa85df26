"""Schedule groups and schedules."""

from __future__ import annotations

from tests.engine.provider.kind import Cloud, Kind, Values, aws_tags, found, patiently

_GONE = "ResourceNotFoundException"


def _group(cloud: Cloud, inputs: Values) -> str:
    cloud.client("scheduler").create_schedule_group(
        Name=inputs["name"], Tags=aws_tags(inputs.get("tags"))
    )
    return str(inputs["name"])


def _find_group(cloud: Cloud, name: str, _: Values) -> Values | None:
    scheduler = cloud.client("scheduler")
    said = found(lambda: scheduler.get_schedule_group(Name=name), _GONE)
    return {"name": name, "arn": said["Arn"]} if said else None


def _no_group(cloud: Cloud, name: str, _: Values) -> None:
    scheduler = cloud.client("scheduler")
    patiently(lambda: scheduler.delete_schedule_group(Name=name), gone=(_GONE,))


def _retag(cloud: Cloud, name: str, _: Values, new: Values) -> None:
    scheduler = cloud.client("scheduler")
    arn = scheduler.get_schedule_group(Name=name)["Arn"]
    scheduler.tag_resource(ResourceArn=arn, Tags=aws_tags(new.get("tags")))


def _request(inputs: Values) -> Values:
    target = inputs["target"]
    retry = target.get("retryPolicy")
    asked: Values = {
        "Name": inputs["name"],
        "GroupName": inputs.get("groupName", "default"),
        "Description": inputs.get("description", ""),
        "ScheduleExpression": inputs["scheduleExpression"],
        "ScheduleExpressionTimezone": inputs.get("scheduleExpressionTimezone", "UTC"),
        "FlexibleTimeWindow": {"Mode": inputs["flexibleTimeWindow"]["mode"]},
        "ActionAfterCompletion": inputs.get("actionAfterCompletion", "NONE"),
        "State": inputs.get("state", "ENABLED"),
        "Target": {"Arn": target["arn"], "RoleArn": target["roleArn"], "Input": target["input"]},
    }
    if retry:
        asked["Target"]["RetryPolicy"] = {
            "MaximumEventAgeInSeconds": int(retry["maximumEventAgeInSeconds"]),
            "MaximumRetryAttempts": int(retry["maximumRetryAttempts"]),
        }
    return asked


def _schedule(cloud: Cloud, inputs: Values) -> str:
    asked = _request(inputs)
    cloud.client("scheduler").create_schedule(**asked)
    return f"{asked['GroupName']}/{asked['Name']}"


def _find_schedule(cloud: Cloud, both: str, _: Values) -> Values | None:
    group, name = both.split("/")
    scheduler = cloud.client("scheduler")
    said = found(lambda: scheduler.get_schedule(GroupName=group, Name=name), _GONE)
    if said is None:
        return None
    return {"name": name, "arn": said["Arn"], "scheduleExpression": said["ScheduleExpression"]}


def _no_schedule(cloud: Cloud, both: str, _: Values) -> None:
    group, name = both.split("/")
    scheduler = cloud.client("scheduler")
    patiently(lambda: scheduler.delete_schedule(GroupName=group, Name=name), gone=(_GONE,))


def _change_schedule(cloud: Cloud, _: str, __: Values, new: Values) -> None:
    cloud.client("scheduler").update_schedule(**_request(new))


KINDS = (
    Kind(
        "aws:scheduler/scheduleGroup:ScheduleGroup",
        _group,
        _find_group,
        _no_group,
        _retag,
        autoname="name",
    ),
    Kind(
        "aws:scheduler/schedule:Schedule",
        _schedule,
        _find_schedule,
        _no_schedule,
        _change_schedule,
        changeable=frozenset(
            {
                "scheduleExpression",
                "scheduleExpressionTimezone",
                "flexibleTimeWindow",
                "actionAfterCompletion",
                "description",
                "state",
                "target",
            }
        ),
        autoname="name",
    ),
)
