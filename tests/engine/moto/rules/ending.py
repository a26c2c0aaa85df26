"""How things end on AWS: slowly, in order, or not at all."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar
from xml.sax.saxutils import escape

from moto.ec2.models.instances import InstanceState

from tests.engine.moto.call import Answer, Call, error, xml_answer
from tests.engine.moto.rule import Rule, Times, World

TERMINATE = "AWSEC2/latest/APIReference/API_TerminateInstances.html"


@dataclass
class SlowTerminate(Rule):
    """Hosts are 'shutting-down' for so many seconds; until then they hold all that is theirs."""

    page: ClassVar[str] = "AWSEC2/latest/UserGuide/how-ec2-instance-termination-works.html"
    seconds: float = 300
    due: dict[tuple[str, str], float] = field(default_factory=dict, init=False)

    def before(self, call: Call, world: World) -> Answer | None:
        if call.action != "TerminateInstances" or call.true("DryRun"):
            return None
        known = world.instances(call.region)
        wanted = call.list("InstanceId")
        if not all(each in known for each in wanted):
            return None
        for each in wanted:
            if known[each].state in ("running", "pending", "stopped"):
                self.due[call.region, each] = world.now() + self.seconds
                known[each]._state = InstanceState("shutting-down", 32)
        items = "".join(_ending(each, known[each].state) for each in wanted)
        return xml_answer(call.action, f"<instancesSet>{items}</instancesSet>")

    def tick(self, world: World) -> None:
        for (region, each), due in list(self.due.items()):
            if world.now() >= due:
                del self.due[region, each]
                instance = world.instances(region).get(each)
                if instance is not None:
                    instance.terminate()


def _ending(each: str, state: str) -> str:
    code = {"terminated": 48}.get(state, 32)
    now = f"<currentState><code>{code}</code><name>{escape(state)}</name></currentState>"
    return (
        f"<item><instanceId>{each}</instanceId>{now}<previousState><code>16</code>"
        "<name>running</name></previousState></item>"
    )


@dataclass
class LingeringVolumes(Rule):
    """Root volumes outlive their host for so many seconds; `seconds` below 0: for ever."""

    page: ClassVar[str] = "ebs/latest/userguide/ebs-volume-lifecycle.html"
    seconds: float = 30
    due: dict[tuple[str, str], float] = field(default_factory=dict, init=False)

    def before(self, call: Call, world: World) -> Answer | None:
        if call.action == "TerminateInstances" and not call.true("DryRun"):
            known = world.instances(call.region)
            for each in call.list("InstanceId"):
                for _, block in known[each].get_block_device_mapping if each in known else ():
                    if block.delete_on_termination:
                        block.delete_on_termination = False
                        self.due[call.region, block.volume_id] = world.now() + self.seconds
        return None

    def tick(self, world: World) -> None:
        for (region, volume), due in list(self.due.items()):
            held = world.ec2(region).volumes.get(volume)
            if held is None:
                del self.due[region, volume]
            elif self.seconds >= 0 and world.now() >= due and not held.attachment:
                del self.due[region, volume]
                world.ec2(region).delete_volume(volume)


@dataclass
class Dependencies(Rule):
    """Groups, subnets and gateways cannot go while something holds them."""

    page: ClassVar[str] = "AWSEC2/latest/APIReference/API_DeleteSecurityGroup.html"

    def before(self, call: Call, world: World) -> Answer | None:
        if call.true("DryRun"):
            return None
        ec2 = world.ec2(call.region)
        if call.action == "DeleteSecurityGroup":
            group = str(call.params.get("GroupId", ""))
            if any(group == held for held in _held_groups(ec2, group)):
                return error(
                    call, "DependencyViolation", f"resource {group} has a dependent object"
                )
        if call.action == "DeleteSubnet":
            subnet = str(call.params.get("SubnetId", ""))
            if any(nic.subnet.id == subnet for nic in list(ec2.enis.values())):
                return error(
                    call,
                    "DependencyViolation",
                    f"The subnet '{subnet}' has dependencies and cannot be deleted.",
                )
        if call.action == "DetachInternetGateway":
            return _mapped_addresses(call, ec2)
        return None


def _held_groups(ec2: Any, group: str) -> Iterable[str]:
    for nic in list(ec2.enis.values()):
        yield from (each.id for each in nic.group_set)
    for groups in list(ec2.groups.values()):
        for other in list(groups.values()):
            if other.id == group:
                continue
            for rule in [*other.ingress_rules, *other.egress_rules]:
                yield str((rule.source_group or {}).get("GroupId"))


def _mapped_addresses(call: Call, ec2: Any) -> Answer | None:
    vpc = str(call.params.get("VpcId", ""))
    for nic in list(ec2.enis.values()):
        if nic.subnet.vpc_id == vpc and nic.public_ip:
            return error(
                call,
                "DependencyViolation",
                f"Network {vpc} has some mapped public address(es). Please unmap those public "
                "address(es) before detaching the gateway.",
            )
    return None


@dataclass
class AllOrNone(Rule):
    """One wrong id ends none; a protected host keeps the others of its zone."""

    page: ClassVar[str] = TERMINATE

    def before(self, call: Call, world: World) -> Answer | None:
        if call.action != "TerminateInstances":
            return None
        known, wanted = world.instances(call.region), call.list("InstanceId")
        for each in wanted:
            if each not in known:
                return error(
                    call, "InvalidInstanceID.NotFound", f"The instance ID '{each}' does not exist"
                )
        held = [known[each] for each in wanted if known[each].disable_api_termination]
        if not held or call.true("DryRun"):
            return None
        zones = {each.placement.zone for each in held}
        for each in wanted:
            if known[each].placement.zone not in zones:
                known[each].terminate()
        return error(
            call,
            "OperationNotPermitted",
            f"The instance '{held[0].id}' may not be terminated. Modify its "
            "'disableApiTermination' instance attribute and try again.",
        )


@dataclass
class ForceRefused(Rule):
    """Types for which skipping the OS shutdown, or forcing, is not supported."""

    page: ClassVar[str] = "AWSEC2/latest/UserGuide/instance-terminate-methods.html"
    skip: bool = True
    force: bool = False
    code: str = "UnsupportedOperation"

    def before(self, call: Call, world: World) -> Answer | None:
        if call.action != "TerminateInstances":
            return None
        for name, refused in (("SkipOsShutdown", self.skip), ("Force", self.force)):
            if refused and call.true(name):
                text = f"{name} is not supported for the instance type of this instance."
                return error(call, self.code, text)
        return None


@dataclass
class TerminateFails(Rule):
    """TerminateInstances that errors, so many times, and ends nothing."""

    page: ClassVar[str] = "AWSEC2/latest/APIReference/errors-overview.html"
    times: int = -1
    nth: tuple[int, ...] = ()
    code: str = "InternalError"
    count: Times = field(init=False)

    def __post_init__(self) -> None:
        self.count = Times(self.times, tuple(self.nth))

    def before(self, call: Call, world: World) -> Answer | None:
        if call.action != "TerminateInstances" or not self.count.hit():
            return None
        return error(call, self.code, "An internal error has occurred", 500)


RULES = (SlowTerminate, LingeringVolumes, Dependencies, AllOrNone, ForceRefused, TerminateFails)
