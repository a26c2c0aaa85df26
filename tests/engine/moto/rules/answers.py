"""Answers that AWS gives in pages, with fields and refusals that moto leaves out."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import ClassVar
from xml.etree import ElementTree

from tests.engine.moto.call import Answer, Call, error
from tests.engine.moto.rule import Rule, World, from_tree, tree


@dataclass
class SmallPages(Rule):
    """Every Describe answer comes in pages of `size`, whatever was asked; ids ask for no pages."""

    page: ClassVar[str] = "AWSEC2/latest/APIReference/Query-Requests.html"
    size: int = 1
    offset: int = field(default=0, init=False)

    def before(self, call: Call, world: World) -> Answer | None:
        self.offset = 0
        if call.service == "ec2" and call.action.startswith("Describe"):
            call.params.pop("MaxResults", None)
            self.offset = int(str(call.params.pop("NextToken", "0")))
        return None

    def after(self, call: Call, answer: Answer, world: World) -> Answer:
        by_id = any(each.endswith(".1") and not each.startswith("Filter") for each in call.params)
        if by_id or not call.action.startswith("Describe") or answer.status != 200:
            return answer
        root = tree(answer)
        for found in root:
            items = list(found)
            if not items or any(each.tag != "item" for each in items):
                continue
            end = self.offset + self.size
            for i, item in enumerate(items):
                if not self.offset <= i < end:
                    found.remove(item)
            for old in root.findall("nextToken"):
                root.remove(old)
            if end < len(items):
                ElementTree.SubElement(root, "nextToken").text = str(end)
        return from_tree(answer, root)


@dataclass
class LaunchedInterfaces(Rule):
    """The interface of a launch ends with its host, and has no tags unless they are asked for."""

    page: ClassVar[str] = "AWSEC2/latest/UserGuide/using-eni.html"

    def after(self, call: Call, answer: Answer, world: World) -> Answer:
        if call.action != "RunInstances" or answer.status != 200:
            return answer
        asked = {str(each) for each in call.params.values()}
        kept = call.params.get("NetworkInterface.1.DeleteOnTermination") == "false"
        for each in tree(answer).iter("instanceId"):
            for nic in world.instances(call.region)[str(each.text)].nics.values():
                nic.delete_on_termination = not kept and nic.id not in asked
                if "network-interface" not in asked:
                    world.ec2(call.region).tags.pop(nic.id, None)
        return answer


@dataclass
class Gp3Kept(Rule):
    """A volume keeps the IOPS and throughput that it was launched with."""

    page: ClassVar[str] = "AWSEC2/latest/APIReference/API_EbsBlockDevice.html"

    def after(self, call: Call, answer: Answer, world: World) -> Answer:
        if call.action != "RunInstances" or answer.status != 200:
            return answer
        asked = {}
        for i in range(1, 10):
            device = call.params.get(f"BlockDeviceMapping.{i}.DeviceName")
            if device:
                asked[device] = f"BlockDeviceMapping.{i}.Ebs."
        ec2 = world.ec2(call.region)
        for each in tree(answer).iter("instanceId"):
            instance = world.instances(call.region)[str(each.text)]
            for device, block in instance.get_block_device_mapping:
                volume, start = ec2.volumes[block.volume_id], asked.get(device)
                if start is None:
                    continue
                for name in ("Iops", "Throughput"):
                    value = call.params.get(start + name)
                    if value is not None:
                        setattr(volume, name.lower(), int(value))
        return answer


@dataclass
class ClientTokens(Rule):
    """The same token and the same request: the first answer again; another request: refused."""

    page: ClassVar[str] = "ec2/latest/devguide/ec2-api-idempotency.html"
    known: dict[tuple[str, str], tuple[dict[str, object], Answer]] = field(
        default_factory=dict, init=False
    )

    def before(self, call: Call, world: World) -> Answer | None:
        if call.action != "RunInstances" or call.true("DryRun"):
            return None
        found = self.known.get((call.region, str(call.params.get("ClientToken"))))
        if found is None or "ClientToken" not in call.params:
            return None
        if found[0] != call.params:
            return error(
                call,
                "IdempotentParameterMismatch",
                "The client token you have provided is associated with another request.",
            )
        return found[1]

    def after(self, call: Call, answer: Answer, world: World) -> Answer:
        if call.action == "RunInstances" and answer.status == 200 and "ClientToken" in call.params:
            self.known[call.region, str(call.params["ClientToken"])] = (dict(call.params), answer)
        return answer


@dataclass
class ScheduleInPast(Rule):
    """A one-time schedule has the form at(yyyy-mm-ddThh:mm:ss) and a time to come."""

    page: ClassVar[str] = "scheduler/latest/UserGuide/schedule-types.html"

    def before(self, call: Call, world: World) -> Answer | None:
        made = call.service == "scheduler" and call.action.startswith(("POST /sch", "PUT /sch"))
        expression = str(call.params.get("ScheduleExpression", ""))
        if not made or not expression or expression.startswith(("rate(", "cron(")):
            return None
        form = re.fullmatch(r"at\((\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\)", expression)
        if form is None:
            return error(call, "ValidationException", f"Invalid Schedule Expression {expression}.")
        zone = str(call.params.get("ScheduleExpressionTimezone") or "UTC")
        if zone == "UTC" and datetime.fromisoformat(form[1]).replace(tzinfo=UTC) <= datetime.now(
            UTC
        ):
            return error(
                call,
                "ValidationException",
                "Invalid Schedule: the time of the schedule has passed.",
            )
        return None


RULES = (SmallPages, LaunchedInterfaces, Gp3Kept, ClientTokens, ScheduleInPast)
