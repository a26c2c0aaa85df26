"""Launches that AWS refuses, delays or ends by itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from moto.ec2.models.instances import StateReason

from tests.engine.moto.call import Answer, Call, error
from tests.engine.moto.rule import Rule, Times, World, from_tree, tree, zone_of

ERRORS = "AWSEC2/latest/APIReference/errors-overview.html"


@dataclass
class NoCapacity(Rule):
    """InsufficientInstanceCapacity for a zone, a type, or the nth matching RunInstances.

    It is a server error (HTTP 500), which SDKs retry: a retry counts as a call.
    """

    page: ClassVar[str] = ERRORS
    zone: str = ""
    type: str = ""
    nth: tuple[int, ...] = ()
    times: int = -1
    count: Times = field(init=False)

    def __post_init__(self) -> None:
        self.count = Times(self.times, tuple(self.nth))

    def before(self, call: Call, world: World) -> Answer | None:
        if call.action != "RunInstances" or call.true("DryRun"):
            return None
        zone, kind = zone_of(call, world), str(call.params.get("InstanceType"))
        if (self.zone and zone != self.zone) or (self.type and kind != self.type):
            return None
        if not self.count.hit():
            return None
        return error(
            call,
            "InsufficientInstanceCapacity",
            f"We currently do not have sufficient {kind} capacity in the Availability Zone you "
            f"requested ({zone}).",
            500,
        )


@dataclass
class NotOffered(Rule):
    """A zone that does not offer a type: not in the offerings, Unsupported when launched."""

    page: ClassVar[str] = "AWSEC2/latest/UserGuide/troubleshooting-launch.html"
    zone: str = ""
    type: str = ""

    def before(self, call: Call, world: World) -> Answer | None:
        if call.action != "RunInstances":
            return None
        if zone_of(call, world) != self.zone or call.params.get("InstanceType") != self.type:
            return None
        return error(
            call,
            "Unsupported",
            f"Your requested instance type ({self.type}) is not supported in your requested "
            f"Availability Zone ({self.zone}).",
        )

    def after(self, call: Call, answer: Answer, world: World) -> Answer:
        if call.action != "DescribeInstanceTypeOfferings" or answer.status != 200:
            return answer
        root = tree(answer)
        for found in root.iter("instanceTypeOfferingSet"):
            for item in list(found):
                if (item.findtext("location"), item.findtext("instanceType")) == (
                    self.zone,
                    self.type,
                ):
                    found.remove(item)
        return from_tree(answer, root)


@dataclass
class VcpuLimit(Rule):
    """VcpuLimitExceeded: the account's quota is too small. Trying again elsewhere is no help."""

    page: ClassVar[str] = ERRORS

    def before(self, call: Call, world: World) -> Answer | None:
        if call.action != "RunInstances":
            return None
        return error(
            call,
            "VcpuLimitExceeded",
            "You have requested more vCPU capacity than your current vCPU limit of 0 allows for "
            "the instance bucket that the specified instance type belongs to.",
        )


@dataclass
class NotYetVisible(Rule):
    """Eventual consistency: for some reads a new instance is not found by id, nor by tag."""

    page: ClassVar[str] = "ec2/latest/devguide/eventual-consistency.html"
    reads: int = 2
    left: dict[str, int] = field(default_factory=dict, init=False)

    def before(self, call: Call, world: World) -> Answer | None:
        asked = [each for each in call.list("InstanceId") if self.left.get(each, 0) > 0]
        if not call.action.startswith("Describe") or not asked:
            return None
        self._read(asked)
        return error(
            call, "InvalidInstanceID.NotFound", f"The instance ID '{asked[0]}' does not exist"
        )

    def after(self, call: Call, answer: Answer, world: World) -> Answer:
        if call.action == "RunInstances" and answer.status == 200:
            self.left.update(
                (each.text or "", self.reads) for each in tree(answer).iter("instanceId")
            )
        hidden = [each for each, left in self.left.items() if left > 0]
        if call.action != "DescribeInstances" or answer.status != 200 or not hidden:
            return answer
        root = tree(answer)
        for found in root.iter("instancesSet"):
            for item in list(found):
                if item.findtext("instanceId") in hidden:
                    found.remove(item)
        self._read(hidden)
        return from_tree(answer, root)

    def _read(self, ids: list[str]) -> None:
        for each in ids:
            self.left[each] -= 1


@dataclass
class InternalError(Rule):
    """An instance that goes from pending to terminated by itself, such as for a KMS key."""

    page: ClassVar[str] = "AWSEC2/latest/UserGuide/troubleshooting-launch.html"
    nth: tuple[int, ...] = ()
    times: int = -1
    code: str = "Client.InternalError"
    count: Times = field(init=False)

    def __post_init__(self) -> None:
        self.count = Times(self.times, tuple(self.nth))

    def after(self, call: Call, answer: Answer, world: World) -> Answer:
        if call.action != "RunInstances" or answer.status != 200 or not self.count.hit():
            return answer
        for each in tree(answer).iter("instanceId"):
            instance = world.instances(call.region)[str(each.text)]
            instance.terminate()
            text = f"{self.code}: Client error on launch"
            instance.state_reason = StateReason(text, self.code)
        return answer


@dataclass
class ChecksFail(Rule):
    """Instances that are running while their status checks are impaired."""

    page: ClassVar[str] = "AWSEC2/latest/UserGuide/monitoring-system-instance-status-check.html"
    nth: tuple[int, ...] = ()
    times: int = -1
    ids: set[str] = field(default_factory=set)
    count: Times = field(init=False)

    def __post_init__(self) -> None:
        self.count, self.ids = Times(self.times, tuple(self.nth)), set(self.ids)

    def after(self, call: Call, answer: Answer, world: World) -> Answer:
        if answer.status != 200:
            return answer
        if call.action == "RunInstances":
            new = {str(each.text) for each in tree(answer).iter("instanceId")}
            self.ids |= new if self.count.hit() else set()
        if call.action != "DescribeInstanceStatus":
            return answer
        root = tree(answer)
        for item in root.iter("item"):
            if item.findtext("instanceId") in self.ids:
                self._impair(item)
        return from_tree(answer, root)

    def _impair(self, item: Any) -> None:
        for status in item.iter("status"):
            status.text = "failed" if status.text == "passed" else "impaired"


RULES = (NoCapacity, NotOffered, VcpuLimit, NotYetVisible, InternalError, ChecksFail)
