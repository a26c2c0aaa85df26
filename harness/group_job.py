"""A job of a trainer over a group of hosts: what it is told, and what is asked along its way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic import Field

from harness.fleet.protocol import FleetSource
from harness.hosts.protocol import Host
from harness.receipts import Incomplete, Line, PushedHost
from harness.strict import Model

SAMPLE = "sample."
"""Begins the id of the job that samples the machine beside another one."""


class Terms(Model):
    """What every rank of one attempt is started with, also when the start is repeated."""

    port: int
    """Rendezvous port on rank 0; 0 with one node."""
    ends_by_utc: str
    interfaces: tuple[str, ...] = ()
    """By rank: the interface that the kernel routes to its peer."""
    boots: dict[str, str] = Field(default_factory=dict)
    """Boot id by host when the attempt began."""
    lines: tuple[Line, ...] = ()
    """What `GroupJob.ready` saw."""


def _anything(group: GroupJob) -> None:
    """Accept whatever is there."""


def _never() -> Incomplete | None:
    """There is time."""
    return None


def _nothing(group: GroupJob) -> tuple[str, ...]:
    """Nothing further."""
    return ()


def _no_lines(group: GroupJob, boots: dict[str, str]) -> tuple[Line, ...]:
    """Nothing is looked at."""
    return ()


@dataclass(frozen=True)
class GroupJob:
    """One job of a trainer over some hosts. `key` names it in the journal and on the hosts."""

    key: str
    recipe: dict[str, Any]
    hosts: tuple[Host, ...]
    pushed: tuple[PushedHost, ...]
    model: str
    """Folder of the model to start from, in each host's work folder."""
    limit_s: float
    """The job is ended after this long, and at the fleet's deadline in any case."""
    label: str
    unit: str = "update"
    heartbeat: bool = True
    resumes: bool = False
    """An attempt is told where the earlier ones wrote, to go on from their checkpoints."""
    earlier: tuple[str, ...] = ()
    """Output folders of earlier attempts, in each host's work folder."""
    beside: Callable[[GroupJob], None] = _anything
    """Called now and then while all ranks run."""
    before: Callable[[GroupJob], tuple[str, ...]] = _nothing
    """Called before another attempt; gives further folders of `earlier`."""
    leave: Callable[[], Incomplete | None] = _never
    """Why the job must not go on; asked all along."""
    ready: Callable[[GroupJob, dict[str, str]], tuple[Line, ...]] = _no_lines
    """Called before an attempt with the boot id of every host; makes them ready."""
    after: Callable[[GroupJob, dict[str, str]], tuple[Line, ...]] = _no_lines
    """Called after an attempt with the boot ids that it began with."""
    cap_bytes: int = 0
    """A host that sends more than this over the job's interface has the job ended; 0: no cap."""
    accept: Callable[[GroupJob], None] = _anything
    """Looks at the outputs once every rank has exited with 0; raises BadInput when they cannot be
    used, and the attempt has failed. Looks only, and may be called again."""

    @property
    def job(self) -> str:
        """Folder-safe name."""
        return self.key.replace("/", ".")

    @property
    def out(self) -> str:
        """Output folder in each host's work folder."""
        return f"out/{self.job}"

    @property
    def samples_path(self) -> str:
        """Samples of the machine, in each host's work folder."""
        return f"jobs/{SAMPLE}{self.job}/samples.jsonl"

    def samples(self, fleet: FleetSource) -> bool:
        """Whether its hosts are sampled: workers of one computer are not, one by one."""
        return self.heartbeat and fleet.kind != "local"


def job_environment(host: Host, pushed: tuple[PushedHost, ...]) -> dict[str, str]:
    """Environment variables of a job: the trainer's environment is first on PATH."""
    known = next(each for each in pushed if each.host == host.name)
    environment = {"PYTHONDONTWRITEBYTECODE": "1"}
    if known.environment_path:
        environment["PATH"] = f"{known.environment_path}/bin:/usr/local/bin:/usr/bin:/bin"
    return environment


def command_line(
    host: Host,
    pushed: tuple[PushedHost, ...],
    *,
    recipe: str,
    model: str,
    out: str,
    rank: int,
    nodes: int,
    address: str,
    port: int,
    interface: str,
) -> list[str]:
    """The trainer's command line (docs/contract.md); paths are made absolute on the host."""
    source = next(each for each in pushed if each.host == host.name).source_sha256
    values = {
        "recipe": f"{host.work}/{recipe}",
        "inputs": f"{host.work}/inputs",
        "model": f"{host.work}/{model}",
        "out": f"{host.work}/{out}",
        "node-rank": str(rank),
        "nodes": str(nodes),
        "address": address,
        "port": str(port),
        "interface": interface,
    }
    argv = [f"{host.work}/source/{source}/trainer/launch"]
    for name, value in values.items():
        argv += [f"--{name}", value]
    return argv
