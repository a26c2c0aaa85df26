"""Machines that the user already has: hosts.json, and the fleet that it makes.

They are never stopped or searched. The inner deadline is a watchdog on every machine that ends only
this run's jobs; 'terminate' means that no process, secret or temporary file of ours is left.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from harness.errors import BadInput, Refused, Waiting
from harness.fleet.protocol import Deadline
from harness.hosts import pins
from harness.hosts.connection import Login
from harness.hosts.protocol import Unreachable
from harness.hosts.ssh import SSHHost, ssh_host
from harness.plan.kinds import Text
from harness.strict import Model, load_file
from trainer import contract

NONE_LOST: Mapping[str, str] = MappingProxyType({})
COPY = "hosts.json"
"""The run's own copy, so that any machine with the run folder and the login key can look."""
Absolute = Annotated[str, StringConstraints(pattern=r"^/[A-Za-z0-9._/-]*$", max_length=200)]
Word = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._:@%+-]{1,253}$")]


class Machine(Model):
    """One machine that is reached by SSH."""

    address: Word
    """Name or address that the operator reaches it at."""
    port: Annotated[int, Field(ge=1, le=65535)] = 22
    user: Word
    host_key: Text | None = None
    """Its public host key: 'ssh-ed25519 AAAA...'. Nothing connects without it."""
    work: Absolute
    """Absolute folder that is ours on the machine; made when it is missing."""
    python: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._/+-]{1,200}$")] = "python3"
    """Python 3.11 or newer there."""
    private_address: Word | None = None
    """Where the other hosts reach it; absent: `address`."""


class HostsFile(Model):
    """hosts.json. Slot `host-N` is the N-th machine. It holds no secret."""

    schema_: Literal["harness/hosts/1"] = Field(default="harness/hosts/1", alias="schema")
    hosts: Annotated[tuple[Machine, ...], Field(min_length=1, max_length=16)]
    login_key: Text | None = None
    """File of the private key, `~` allowed; absent: the SSH agent and the user's default keys."""
    patience_s: Annotated[float, Field(ge=1, le=3600)] = 90.0
    """How long a host may be out of reach, while another is not, before it counts as lost."""


def read_hosts(path: Path) -> HostsFile:
    """The file, every key checked. Raises BadInput; Refused when a host key is missing."""
    found = load_file(HostsFile, path)
    for slot, machine in enumerate(found.hosts):
        if machine.host_key is None:
            raise pins.missing(f"{path}#/hosts/{slot}", machine.address, machine.port)
        pins.parse_key(machine.host_key, where=f"{path}#/hosts/{slot}/host_key")
    places = [(machine.address, machine.port, machine.work) for machine in found.hosts]
    if len(set(places)) != len(places):
        raise BadInput("names one machine and work folder twice", where=f"{path}#/hosts")
    if found.login_key and not Path(found.login_key).expanduser().is_file():
        raise BadInput("there is no such login key", where=f"{path}#/login_key")
    return found


def keep_hosts(given: Path, run_folder: Path, plan_workers: int) -> int:
    """Copy the file into the run's folder, once; returns how many hosts it has.

    Raises BadInput (too few), Refused (another file than the run was begun with).
    """
    found, copy = read_hosts(given), run_folder / COPY
    if len(found.hosts) < plan_workers:
        raise BadInput(
            f"the plan needs {plan_workers} host(s), the file has {len(found.hosts)}",
            where=f"{given}#/hosts",
        )
    if not copy.exists():
        contract.write_json(copy, found.to_json())
    elif load_file(HostsFile, copy) != found:
        raise Refused(
            f"the hosts file changed after the run was begun with what stands in {copy}",
            where=str(given),
        )
    return len(found.hosts)


class HostsFileFleet:
    """`FleetSource` over the machines of a run's hosts.json."""

    def __init__(
        self,
        run_folder: Path,
        fleet_id: str,
        deadline_utc: str,
        *,
        patience_s: float | None = None,
        lost: Mapping[str, str] = NONE_LOST,
    ) -> None:
        found = load_file(HostsFile, run_folder / COPY)
        self._id, self._deadline_utc, self._lost = fleet_id, deadline_utc, lost
        key = str(Path(found.login_key).expanduser()) if found.login_key else None
        self._hosts = tuple(
            _host(machine, slot, fleet_id, key, patience_s or found.patience_s)
            for slot, machine in enumerate(found.hosts)
        )

    @property
    def kind(self) -> str:
        """'hosts-file'."""
        return "hosts-file"

    @property
    def id(self) -> str:
        """The fleet's identifier; HARNESS_FLEET in the environment of all its processes."""
        return self._id

    @property
    def deadline_utc(self) -> str:
        """Absolute; never moves."""
        return self._deadline_utc

    def hosts(self) -> tuple[SSHHost, ...]:
        """The hosts in slot order."""
        return self._hosts

    def arm_deadlines(self) -> None:
        """Start the watchdog on every machine, again where it died. Raises Waiting."""
        for host in self._standing():
            unit = f"harness-{self._id}-{host.name}-deadline"
            host.helper(
                "deadline", "arm", host.fleet_folder, "--at", self._deadline_utc, "--unit", unit,
                timeout_s=60,
            )  # fmt: skip

    def deadlines(self) -> tuple[Deadline, ...]:
        """An inner deadline for each machine, read back now; the outer does not apply."""
        outer = Deadline(
            kind="outer",
            applies=False,
            armed=False,
            proof="not applicable: these machines are the user's own and are never stopped",
        )
        return (*(self._inner(host) for host in self._standing()), outer)

    def _inner(self, host: SSHHost) -> Deadline:
        seen, _ = host.link.ask({"ask": "deadline", "folder": host.fleet_folder})
        proof = f"{host.name}: watchdog {seen['status']}"
        if seen.get("pid") is not None:
            proof += f", process {seen['pid']}, heartbeat {seen['heartbeat_utc']}"
        return Deadline(
            kind="inner",
            applies=True,
            at_utc=self._deadline_utc,
            armed=seen["status"] == "armed" and seen["deadline_utc"] == self._deadline_utc,
            proof=proof,
        )

    def notes(self) -> tuple[str, ...]:
        """Nothing: the pinned keys stand in the hosts file."""
        return ()

    def _standing(self) -> tuple[SSHHost, ...]:
        """Those that are not gone for good."""
        return tuple(host for host in self._hosts if host.name not in self._lost)

    def proof_of_loss(self, name: str) -> str:
        """Nobody but the user knows; refused while the machine answers."""
        host = next(each for each in self._hosts if each.name == name)
        try:
            host.state("lost")
        except Unreachable as error:
            return f"stated by the user, and it did not answer: {error.what}"
        raise Refused("it answers, so it is not gone", where=name)

    def end(self) -> tuple[str, ...]:
        """End every job and process of ours and remove what was staged; logs and outputs stay.

        Raises Waiting, with every machine that could not be ended.
        """
        sentences = [f"{name}: nothing was ended there, {why}" for name, why in self._lost.items()]
        failed: list[Waiting] = []
        for host in self._standing():
            try:
                host.link.hang_up()
                done = host.helper("ending", "end", host.fleet_folder, "--id", host.mark,
                                   "--staged", timeout_s=120)  # fmt: skip
                sentences += [str(each) for each in contract.parse(done.stdout)]
            except Waiting as error:
                failed.append(error)
        if failed:
            raise Waiting("; ".join(str(each).rstrip(".") for each in failed), where=self._id)
        return tuple(sentences)

    def residue(self) -> tuple[str, ...]:
        """Processes, sockets and temporary files of ours that are still there."""
        left: list[str] = []
        for host in self._standing():
            host.link.hang_up()
            done = host.bare("ending", "residue", host.fleet_folder, "--id", host.mark)
            left += [f"{host.name}: {each}" for each in contract.parse(done)]
        return tuple(left)

    def close(self) -> None:
        """Close the connections; nothing on the machines changes."""
        for host in self._hosts:
            host.link.hang_up()
            host.link.drop()


def _host(
    machine: Machine, slot: int, fleet_id: str, key: str | None, patience_s: float
) -> SSHHost:
    login = Login(
        name=f"host-{slot}",
        address=machine.address,
        port=machine.port,
        user=machine.user,
        host_keys=(machine.host_key,) if machine.host_key else (),
        key_file=key,
        python=machine.python,
        patience_s=patience_s,
    )
    return ssh_host(
        login, base=machine.work.rstrip("/"), fleet_id=fleet_id,
        peer_address=machine.private_address,
    )  # fmt: skip
