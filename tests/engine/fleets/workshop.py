"""A user's project with an AWS plan, and the harness command in processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.cloud.clients import Aws
from harness.fleet import engine
from harness.fleet.admitted import AdmittedFleet
from harness.fleet.tags import FLEET, SLOT
from harness.journal import Entry, read_entries
from harness.launch.fleets import FleetPlace, fleet_places
from harness.results import Resources
from tests.engine.moto.server import MotoCloud
from tests.engine.provider.server import Provider
from tests.toy_plan import write_plan
from tests.unit.launch.aws import PARAMETER, aws_plan

ROOT = Path(__file__).parents[3]
ALIVE = ("pending", "running", "stopping", "stopped", "shutting-down")
"""States of a host that is not gone."""
DEADLINE_S = 4 * 3600
TAKES_ADDRESS = {"admit", "up", "access", "--up"}
KILLED = Path(__file__).with_name("killed.py")


@dataclass(frozen=True)
class Ran:
    """How a command ended and what it said."""

    code: int
    out: str
    err: str

    def ok(self) -> Ran:
        assert self.code == 0, self.err + self.out
        return self


@dataclass
class _Session:
    """boto3's session, as far as `Aws` asks it."""

    cloud: MotoCloud

    def client(self, service: str, region: str = "us-east-1", config: Any = None) -> Any:
        return self.cloud.client(service, region)


@dataclass
class Workshop:
    """One project folder in one cloud."""

    folder: Path
    cloud: MotoCloud
    provider: Provider
    plan: Path = field(init=False)

    def __post_init__(self) -> None:
        from tests.unit.launch.conftest import publish

        image = self.cloud.client("ec2").register_image(Name="Deep Learning Base")
        publish(PARAMETER, image["ImageId"])
        (self.folder / "state").mkdir(parents=True, exist_ok=True)
        (self.folder / "Pulumi.yaml").write_bytes((ROOT / "Pulumi.yaml").read_bytes())
        (self.folder / "infra").symlink_to(ROOT / "infra")

    def write(self, name: str = "toy", **hosts: Any) -> Path:
        plan = aws_plan(**hosts)
        plan["name"] = name
        plan["budget"]["attempts"] = 30
        plan["budget"]["deadline_s"] = DEADLINE_S  # a slow machine kills and types for an hour
        self.plan = write_plan(self.folder, plan)
        return self.plan

    @property
    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            **self.cloud.environment,
            **self.provider.environment,
            "PYTHONPATH": str(ROOT),
            "PULUMI_HOME": str(self.folder / "home"),
            "PULUMI_BACKEND_URL": f"file://{self.folder}/state",
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        }

    def argv(self, verb: str, *more: str) -> list[str]:
        fixed = ["--address", "198.51.100.7"] if {verb, *more} & TAKES_ADDRESS else []
        return [verb, str(self.plan), *fixed, *more, "--runs", str(self.runs)]

    def harness(self, verb: str, *more: str, timeout_s: float = 1800) -> Ran:
        return self._run([sys.executable, "-m", "harness", *self.argv(verb, *more)], timeout_s)

    def cost(self, resources: Path) -> Ran:
        """`harness cost` of a fleet's record."""
        return self._run([sys.executable, "-m", "harness", "cost", str(resources)], 1800)

    def sweep(self) -> Ran:
        """`harness sweep` of all regions that were used."""
        words = ["sweep", "--runs", str(self.runs)]
        return self._run([sys.executable, "-m", "harness", *words], 1800)

    def pulumi(self, verb: str) -> Ran:
        """The plain command, without any flag that a gate would need; streams together."""
        done = subprocess.run(
            [engine.find(ROOT), verb, "--yes", "--skip-preview", "--non-interactive",
             "--stack", self.admitted.study],
            env={**self.environment, "PULUMI_CONFIG_PASSPHRASE": ""}, cwd=self.folder,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            check=False,
        )  # fmt: skip
        return Ran(done.returncode, done.stdout, "")

    def killed(self, mode: str, verb: str, *more: str, timeout_s: float = 1800) -> Ran:
        """The same command, really killed at the next point of that kind (see killed.py)."""
        return self._run(self._killed(mode, verb, *more), timeout_s)

    def started(self, mode: str, verb: str, *more: str) -> subprocess.Popen[str]:
        """The same command, not waited for."""
        return subprocess.Popen(
            self._killed(mode, verb, *more), env=self.environment, cwd=self.folder,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def _killed(self, mode: str, verb: str, *more: str) -> list[str]:
        memory = str(self.folder / "memory")
        return [sys.executable, str(KILLED), mode, memory, *self.argv(verb, *more)]

    def kill_points(self, name: str = "memory") -> set[str]:
        """Where commands were killed; with 'memory.all' every place where one could have been."""
        return set((self.folder / name).read_text().split("\n")) - {""}

    def _run(self, argv: list[str], timeout_s: float) -> Ran:
        done = subprocess.run(
            argv, env=self.environment, cwd=self.folder, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=timeout_s, check=False,
        )  # fmt: skip
        return Ran(done.returncode, done.stdout, done.stderr)

    @property
    def aws(self) -> Aws:
        """The operator's side in this process."""
        session: Any = _Session(self.cloud)
        return Aws("us-east-1", session=session)

    @property
    def runs(self) -> Path:
        return self.folder / "runs"

    @property
    def place(self) -> FleetPlace:
        return fleet_places(self.runs)[-1]

    @property
    def admitted(self) -> AdmittedFleet:
        return self.place.admitted

    @property
    def entries(self) -> list[Entry]:
        return read_entries(self.place.journal_path)[0]

    def resources(self) -> Resources:
        value = json.loads((self.place.folder / "resources.json").read_text())
        return Resources.model_validate_json(json.dumps(value))

    def instances(self, *states: str) -> list[dict[str, Any]]:
        """Every instance of this cloud, whoever launched it."""
        pages = self.cloud.client("ec2").get_paginator("describe_instances").paginate()
        found = [i for p in pages for r in p["Reservations"] for i in r["Instances"]]
        return [i for i in found if not states or i["State"]["Name"] in states]

    def slots(self, *states: str) -> list[str]:
        """Slots of the fleet's hosts in these states."""
        found = []
        for instance in self.instances(*states):
            tags = {tag["Key"]: tag["Value"] for tag in instance.get("Tags", [])}
            if tags.get(FLEET) == self.admitted.fleet:
                found.append(tags[SLOT])
        return sorted(found)
