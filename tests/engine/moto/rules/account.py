"""What an account may do: permissions, quotas, rates; and services that moto lacks."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, ClassVar
from xml.sax.saxutils import escape

from tests.engine.moto.call import XML, Answer, Call, error, json_answer, xml_answer
from tests.engine.moto.rule import Rule, Times, World

G_AND_VT = "L-DB2E81BA"


@dataclass
class Denied(Rule):
    """A call that the caller's policy does not allow, dry run or not."""

    page: ClassVar[str] = "AWSEC2/latest/APIReference/errors-overview.html"
    action: str = ""
    """'RunInstances'; for REST services the start of 'POST /schedules'."""
    service: str = "ec2"
    times: int = -1
    nth: tuple[int, ...] = ()
    count: Times = field(init=False)

    def __post_init__(self) -> None:
        self.count = Times(self.times, tuple(self.nth))

    def before(self, call: Call, world: World) -> Answer | None:
        if call.service != self.service or not call.action.startswith(self.action):
            return None
        if not self.count.hit():
            return None
        code = {"ec2": "UnauthorizedOperation", "iam": "AccessDenied", "s3": "AccessDenied"}
        text = f"You are not authorized to perform this operation ({self.action})."
        return error(call, code.get(call.service, "AccessDeniedException"), text, 403)


@dataclass
class Throttled(Rule):
    """RequestLimitExceeded for the first calls of an action ('' is any of EC2)."""

    page: ClassVar[str] = "ec2/latest/devguide/ec2-api-throttling.html"
    action: str = ""
    times: int = 1
    count: Times = field(init=False)

    def __post_init__(self) -> None:
        self.count = Times(self.times)

    def before(self, call: Call, world: World) -> Answer | None:
        if call.service != "ec2" or (self.action and call.action != self.action):
            return None
        if not self.count.hit():
            return None
        return error(call, "RequestLimitExceeded", "Request limit exceeded.", 503)


@dataclass
class Quotas(Rule):
    """Service Quotas for EC2: vCPUs of running On-Demand G and VT instances."""

    page: ClassVar[str] = "ec2/latest/instancetypes/ec2-instance-quotas.html"
    vcpus: float = 64

    def before(self, call: Call, world: World) -> Answer | None:
        if call.service != "servicequotas" or call.params.get("ServiceCode") != "ec2":
            return None
        if call.action not in ("GetServiceQuota", "GetAWSDefaultServiceQuota"):
            return None
        if call.params.get("QuotaCode") != G_AND_VT:
            return error(call, "NoSuchResourceException", "The request failed: no such quota.")
        value = self.vcpus if call.action == "GetServiceQuota" else 0.0
        name = "Running On-Demand G and VT instances"
        quota = {"ServiceCode": "ec2", "QuotaCode": G_AND_VT, "QuotaName": name, "Value": value}
        return json_answer({"Quota": {**quota, "Unit": "None", "Adjustable": True}})


@dataclass
class Simulator(Rule):
    """IAM's policy simulator: allows all but what is listed."""

    page: ClassVar[str] = "IAM/latest/APIReference/API_SimulatePrincipalPolicy.html"
    denied: tuple[str, ...] = ()

    def before(self, call: Call, world: World) -> Answer | None:
        if call.service != "iam" or call.action != "SimulatePrincipalPolicy":
            return None
        items = "".join(
            f"<member><EvalActionName>{each}</EvalActionName><EvalDecision>"
            f"{'explicitDeny' if each in self.denied else 'allowed'}</EvalDecision></member>"
            for each in call.list("ActionNames.member")
        )
        body = (
            f"<{call.action}Response><{call.action}Result><EvaluationResults>{items}"
            f"</EvaluationResults><IsTruncated>false</IsTruncated></{call.action}Result>"
            f"</{call.action}Response>"
        )
        return Answer(200, (("Content-Type", XML),), body.encode())


@dataclass
class PriceList(Rule):
    """The Price List Query API: the given entries (JSON texts), one a page, by usage type."""

    page: ClassVar[str] = "aws-cost-management/latest/APIReference/API_pricing_GetProducts.html"
    entries: tuple[str, ...] = ()

    def before(self, call: Call, world: World) -> Answer | None:
        if call.service != "pricing" or call.action != "GetProducts":
            return None
        wanted = {each["Field"]: each["Value"] for each in call.params.get("Filters", [])}
        found = [
            text
            for text in self.entries
            if json.loads(text)["product"]["attributes"]["usagetype"] == wanted["usagetype"]
            and json.loads(text)["serviceCode"] == call.params["ServiceCode"]
        ]
        at = int(call.params.get("NextToken", "0"))
        more = {"NextToken": str(at + 1)} if at + 1 < len(found) else {}
        return json_answer({"FormatVersion": "aws_v1", "PriceList": found[at : at + 1], **more})


@dataclass
class DryRun(Rule):
    """DryRun=true makes nothing: DryRunOperation, for calls of which moto does not know it."""

    page: ClassVar[str] = "AWSEC2/latest/APIReference/CommonParameters.html"

    def before(self, call: Call, world: World) -> Answer | None:
        if call.service != "ec2" or not call.true("DryRun"):
            return None
        return error(
            call,
            "DryRunOperation",
            "Request would have succeeded, but DryRun flag is set.",
            412,
        )


@dataclass
class PlacementGroups(Rule):
    """Placement groups, which moto does not have; one in use cannot be deleted."""

    page: ClassVar[str] = "AWSEC2/latest/UserGuide/placement-groups.html"
    groups: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict, init=False)

    def before(self, call: Call, world: World) -> Answer | None:
        name = str(call.params.get("GroupName", ""))
        if call.action == "CreatePlacementGroup":
            if (call.region, name) in self.groups:
                text = f"The placement group {name} already exists."
                return error(call, "InvalidPlacementGroup.Duplicate", text)
            made = {"id": f"pg-{len(self.groups):017x}", "strategy": call.params.get("Strategy")}
            self.groups[call.region, name] = {**made, "tags": _tags(call)}
            one = self._item((call.region, name))
            return xml_answer(
                call.action, f"<return>true</return><placementGroup>{one}</placementGroup>"
            )
        if call.action == "DescribePlacementGroups":
            return self._describe(call)
        if call.action == "DeletePlacementGroup":
            return self._delete(call, name, world)
        if call.action in ("CreateTags", "DeleteTags"):
            return self._retag(call)
        wanted = str(call.params.get("Placement.GroupName", ""))
        if call.action == "RunInstances" and wanted and (call.region, wanted) not in self.groups:
            text = f"The placement group '{wanted}' is unknown."
            return error(call, "InvalidPlacementGroup.Unknown", text)
        return None

    def after(self, call: Call, answer: Answer, world: World) -> Answer:
        wanted = str(call.params.get("Placement.GroupName", ""))
        if call.action == "RunInstances" and answer.status == 200 and wanted:
            newest = list(world.ec2(call.region).reservations.values())[-1]
            for instance in newest.instances:
                instance.placement.group_name = wanted
        return answer

    def _describe(self, call: Call) -> Answer:
        names, ids = call.list("GroupName"), call.list("GroupId")
        here = [key for key in self.groups if key[0] == call.region]
        for name in names:
            if (call.region, name) not in here:
                text = f"The placement group '{name}' is unknown."
                return error(call, "InvalidPlacementGroup.Unknown", text)
        found = [
            key
            for key in here
            if (not names or key[1] in names)
            and (not ids or self.groups[key]["id"] in ids)
            and all(self._passes(key, *each) for each in _filters(call))
        ]
        items = "".join(f"<item>{self._item(key)}</item>" for key in found)
        return xml_answer(call.action, f"<placementGroupSet>{items}</placementGroupSet>")

    def _passes(self, key: tuple[str, str], name: str, values: list[str]) -> bool:
        group = self.groups[key]
        if name.startswith("tag:"):
            return group["tags"].get(name[4:]) in values
        if name == "tag-key":
            return any(each in group["tags"] for each in values)
        held = {"group-name": key[1], "strategy": group["strategy"], "state": "available"}
        return held.get(name) in values

    def _delete(self, call: Call, name: str, world: World) -> Answer:
        if (call.region, name) not in self.groups:
            text = f"The placement group '{name}' is unknown."
            return error(call, "InvalidPlacementGroup.Unknown", text)
        for instance in world.instances(call.region).values():
            if instance.placement.group_name == name and instance.state != "terminated":
                text = f"The placement group {name} is in use and may not be deleted."
                return error(call, "InvalidPlacementGroup.InUse", text)
        del self.groups[call.region, name]
        return xml_answer(call.action, "<return>true</return>")

    def _retag(self, call: Call) -> Answer | None:
        """Tags of groups; a call that names other things besides goes to moto too (there, only)."""
        ids = set(call.list("ResourceId"))
        held = [group for group in self.groups.values() if group["id"] in ids]
        if not held or len(held) < len(ids):
            return None
        for group in held:
            for key, value in _tags(call, "Tag").items():
                if call.action == "CreateTags":
                    group["tags"][key] = value
                else:
                    group["tags"].pop(key, None)
        return xml_answer(call.action, "<return>true</return>")

    def _item(self, key: tuple[str, str]) -> str:
        group = self.groups[key]
        tags = "".join(
            f"<item><key>{escape(name)}</key><value>{escape(value)}</value></item>"
            for name, value in group["tags"].items()
        )
        arn = f"arn:aws:ec2:{key[0]}:123456789012:placement-group/{escape(key[1])}"
        return (
            f"<groupName>{escape(key[1])}</groupName><groupId>{group['id']}</groupId>"
            f"<strategy>{group['strategy']}</strategy><state>available</state>"
            f"<groupArn>{arn}</groupArn><tagSet>{tags}</tagSet>"
        )


def _tags(call: Call, start: str = "TagSpecification.1.Tag") -> dict[str, str]:
    found, i = {}, 1
    while (key := call.params.get(f"{start}.{i}.Key")) is not None:
        found[str(key)] = str(call.params.get(f"{start}.{i}.Value", ""))
        i += 1
    return found


def _filters(call: Call) -> list[tuple[str, list[str]]]:
    found, i = [], 1
    while (name := call.params.get(f"Filter.{i}.Name")) is not None:
        found.append((str(name), call.list(f"Filter.{i}.Value")))
        i += 1
    return found


RULES = (Denied, Throttled, Quotas, Simulator, PriceList, DryRun, PlacementGroups)
