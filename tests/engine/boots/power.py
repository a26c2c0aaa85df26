"""Plays EC2's boots: every instance that is launched comes up as a machine, and ends as one."""

from __future__ import annotations

import base64
import random
import socket
import threading
from pathlib import Path
from types import TracebackType
from typing import ClassVar

from tests.engine.boots.machine import Machine
from tests.engine.moto.call import Answer, Call, xml_answer
from tests.engine.moto.rule import Rule, World, from_tree, tree
from tests.engine.moto.server import REGION, MotoCloud

UP = ("pending", "running")
POLL_S = 0.2


class Power(Rule):
    """A thread that boots and ends machines, and the rule that shows their addresses and consoles.

    The addresses are loopback ones of this computer, free ones, port 22; moto's own lead nowhere.
    """

    page: ClassVar[str] = "AWSEC2/latest/UserGuide/ec2-instance-lifecycle.html"

    def __init__(self, cloud: MotoCloud, folder: Path) -> None:
        self._cloud, self._folder = cloud, folder
        self.machines: dict[str, Machine] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._play, daemon=True)

    def __enter__(self) -> Power:
        self._cloud.shim.switched.append(self)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()
        for machine in self.machines.values():
            machine.end()

    def before(self, call: Call, world: World) -> Answer | None:
        """The console of a machine is what it printed."""
        machine = self.machines.get(str(call.params.get("InstanceId")))
        if call.action != "GetConsoleOutput" or machine is None:
            return None
        text = base64.b64encode(machine.console.encode()).decode()
        inner = f"<instanceId>{machine.instance_id}</instanceId><output>{text}</output>"
        return xml_answer(call.action, inner)

    def after(self, call: Call, answer: Answer, world: World) -> Answer:
        """Addresses at which machines are."""
        if call.action not in ("DescribeInstances", "RunInstances") or answer.status != 200:
            return answer
        root = tree(answer)
        for item in root.iter("item"):
            each = item.findtext("instanceId")
            if each is None or item.find("ipAddress") is None:
                continue
            address = self._machine(each).address
            for name in ("ipAddress", "privateIpAddress"):
                for found in item.findall(name):
                    found.text = address
        return from_tree(answer, root)

    def _machine(self, instance_id: str) -> Machine:
        if instance_id not in self.machines:
            folder = self._folder / instance_id
            made = Machine(instance_id, free_address(), folder, self._cloud.endpoint)
            self.machines[instance_id] = made
        return self.machines[instance_id]

    def _play(self) -> None:
        while not self._over.wait(POLL_S):
            with self._cloud.shim.lock:
                known = self._cloud.shim.world.instances(REGION)
                states = {each: one.state for each, one in known.items()}
                for each in states:
                    self._machine(each)
            for each, state in states.items():
                machine = self.machines[each]
                if state in UP and machine.process is None and not machine.folder.exists():
                    self._boot(machine)
                elif state not in UP or machine.powered_off:
                    self._end(machine, state)
                elif machine.process is not None:
                    machine.tick()

    def _boot(self, machine: Machine) -> None:
        ec2 = self._cloud.client("ec2")
        said = ec2.describe_instance_attribute(InstanceId=machine.instance_id, Attribute="userData")
        text = base64.b64decode(said["UserData"]["Value"]).decode()
        (found,) = ec2.describe_instances(InstanceIds=[machine.instance_id])["Reservations"]
        name = found["Instances"][0]["KeyName"]
        (pair,) = ec2.describe_key_pairs(KeyNames=[name], IncludePublicKey=True)["KeyPairs"]
        machine.boot(text, pair["PublicKey"])

    def _end(self, machine: Machine, state: str) -> None:
        """A power-off in the guest is the instance's own shutdown behaviour: terminate."""
        if state in UP:
            self._cloud.client("ec2").terminate_instances(InstanceIds=[machine.instance_id])
        machine.end()


def free_address() -> str:
    """A loopback address on which nothing listens for SSH."""
    while True:
        address = f"127.{random.randint(64, 250)}.{random.randint(0, 255)}.{random.randint(2, 250)}"
        with socket.socket() as probe:
            try:
                probe.bind((address, 22))
            except OSError:
                continue
            return address
