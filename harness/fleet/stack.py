"""The hosts of a Pulumi stack as a fleet: found by the stack's outputs, rechecked with EC2."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ConfigDict

from harness.clock import Clock, parse_utc, whole_second
from harness.cloud import gone
from harness.cloud.clients import Aws, asking
from harness.display.admission import hourly
from harness.errors import HarnessError, Refused, Waiting, command
from harness.fleet import places
from harness.fleet.admitted import AdmittedFleet
from harness.fleet.outputs import StackHost, StackOutputs
from harness.fleet.protocol import Deadline
from harness.launch import closing, ending, outer, preserved, record
from harness.launch.drive import Drive, driving, known_disks, standing_outputs
from harness.launch.fleets import FleetPlace, fleet_named
from harness.strict import Model, load

if TYPE_CHECKING:
    from harness.hosts.ssh import SSHHost

USER = "ubuntu"
WORK = "/home/ubuntu/harness"
READY_S = 900.0
"""How long a host may take from its launch to its published keys and its ready marker."""
GUARD = "/usr/local/sbin/harness-guard"
TIMER = "harness-guard.timer"


class PublishedKeys(Model):
    """What a host wrote once, as far as it is used (harness.fleet.places.host_keys)."""

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True)

    instance_id: str
    keys: tuple[str, ...]


@dataclass
class StackFleet:
    """`FleetSource` of one admitted fleet, for one run of it."""

    run_folder: Path
    fleet_id: str
    keep: bool = False
    lost: tuple[str, ...] = ()
    """Hosts that are gone for good."""
    clock: Clock = field(default_factory=Clock)
    _hosts: tuple[SSHHost, ...] | None = None
    _notes: dict[int, str] = field(default_factory=dict)
    """By slot: why its console says nothing of its host keys."""

    def __post_init__(self) -> None:
        self.place: FleetPlace = fleet_named(self.run_folder.resolve().parents[1], self.fleet_id)
        self.aws = Aws(self.admitted.region, clock=self.clock)

    @property
    def admitted(self) -> AdmittedFleet:
        """What was admitted."""
        return self.place.admitted

    @property
    def kind(self) -> str:
        """'stack'."""
        return "stack"

    @property
    def id(self) -> str:
        """The fleet's identifier."""
        return self.fleet_id

    @property
    def deadline_utc(self) -> str:
        """Absolute; never moves."""
        return self.admitted.deadline_utc

    def outputs(self) -> StackOutputs:
        """The stack's outputs, each host rechecked with EC2. Raises Waiting when one is gone."""
        return standing_outputs(self.place, self.aws, self.clock, lost=self.lost)

    def hosts(self) -> tuple[SSHHost, ...]:
        """The hosts in slot order, their published keys pinned."""
        if self._hosts is None:
            self._hosts = tuple(self._host(each) for each in self.outputs().hosts)
        return self._hosts

    def arm_deadlines(self) -> None:
        """Both deadlines were armed by the launch; here every host must be set up and say so."""
        for host in self.outputs().hosts:
            if f"host-{host.slot}" in self.lost:
                continue
            self._object(places.ready(self.admitted, host.slot), f"host-{host.slot} to be ready")

    def deadlines(self) -> tuple[Deadline, ...]:
        """The guest's own timer on each host, and each host's schedule, read back now."""
        outputs = self.outputs()
        faults = outer.faults(self.aws, outputs)
        wrong = {slot: why for slot, why in faults.items() if f"host-{slot}" not in self.lost}
        outside = Deadline(
            kind="outer",
            applies=True,
            at_utc=self.deadline_utc,
            armed=not wrong,
            proof="; ".join(f"slot {slot}: {why}" for slot, why in wrong.items())
            or f"schedules {', '.join(outputs.schedules)} of {outputs.schedule_group} read back",
        )
        standing = (host for host in self.hosts() if host.name not in self.lost)
        return (*(self._inner(host) for host in standing), outside)

    def proof_of_loss(self, name: str) -> str:
        """AWS's own word about the instance and its disks. Raises Refused without it."""
        every = tuple(f"host-{slot}" for slot in range(self.admitted.count))
        outputs = standing_outputs(self.place, self.aws, self.clock, lost=every)
        host = next(each for each in outputs.hosts if f"host-{each.slot}" == name)
        disks = known_disks(self.place).get(host.instance_id, ())
        return gone.proof_of_loss(self.aws, host.instance_id, disks)

    def notes(self) -> tuple[str, ...]:
        """Hosts whose keys only their own publication vouches for."""
        self.hosts()
        return tuple(self._notes[slot] for slot in sorted(self._notes))

    def end(self) -> tuple[str, ...]:
        """Open the stack's gate and terminate every host, unless hosts are to stay."""
        from harness.cloud.residue import residue

        stay = self._stay()
        if stay:
            return (stay,)
        self.close()
        with self._driving() as drive:
            released = preserved.require_released(self.place, command("status"))
            record.write_release(drive.journal, released)
            drive.open_gate()
            ended = ending.end_all(drive.aws, drive.admitted, drive.journal)
            record.write_look(drive.journal, residue(drive.aws, self.fleet_id))
            closing.write(self.place, self.clock.utc())
        return tuple(
            f"{host.id}: terminated at {host.ended_utc} ({host.how})." for host in ended.hosts
        )

    def residue(self) -> tuple[str, ...]:
        """What of the fleet still costs money; the rest of the stack is removed by `destroy`."""
        from harness.cloud.residue import residue

        if self._stay():
            return ()
        return tuple(left.sentence() for left in residue(self.aws, self.fleet_id) if left.costs)

    def close(self) -> None:
        """Close connections; nothing on the hosts changes."""
        for host in self._hosts or ():
            host.link.hang_up()
            host.link.drop()
        self._hosts = None

    def _stay(self) -> str:
        """Why hosts are not ended now; '' when they are."""
        until = f"they cost {hourly(self.admitted)} until {self.deadline_utc}"
        if self.keep:
            return f"The hosts are kept as asked; {until}."
        waiting = preserved.waiting_for(self.place)
        if not waiting:
            return ""
        go_on = preserved.unfinished(self.place)
        return f"The hosts stay, {until}, because of {waiting[0]}. Go on with it: {go_on}"

    def _driving(self) -> AbstractContextManager[Drive]:
        return driving(self.place, self.aws, self.clock, print)

    def _host(self, host: StackHost) -> SSHHost:
        from harness.hosts.connection import Login
        from harness.hosts.ssh import ssh_host

        name = f"host-{host.slot}"
        keys = self._published_keys(host, name)
        login = Login(
            name=name,
            address=host.public_address,
            port=22,
            user=USER,
            host_keys=keys,
            key_file=str(self.place.login_key),
        )
        # Named by the run: a fleet may carry several, each with jobs and folders of its own.
        run = self.run_folder.resolve().name
        return ssh_host(login, base=WORK, fleet_id=run, peer_address=host.private_address)

    def _published_keys(self, host: StackHost, name: str) -> tuple[str, ...]:
        """What to pin: the host's own write-once publication, beside its console's word."""
        from harness.cloud.console import witness

        data = self._object(places.host_keys(self.admitted, host.slot), f"the host keys of {name}")
        published = load(PublishedKeys, data, where=f"{name}: host keys")
        seen = witness(self.aws, host.instance_id, published.keys)
        wrong = ""
        if published.instance_id != host.instance_id:
            wrong = f"are those of {published.instance_id}, not of {host.instance_id}"
        elif seen.verdict == "differs":
            wrong = f"are not to be trusted: {seen.said}"
        if wrong:
            raise Refused(
                f"the published host keys of {name} {wrong}",
                where=self.fleet_id,
                next_command=command("down", self.admitted.plan_path),
            )
        if seen.verdict == "absent":
            self._notes[host.slot] = f"host keys of {name}: {seen.said}"
        return published.keys

    def _object(self, key: str, what: str) -> bytes:
        """An object of the fleet's folder in the bucket, waited for."""
        from botocore.exceptions import ClientError

        s3 = self.aws.session.client("s3")
        until = self.clock.monotonic() + READY_S
        while True:
            with asking(f"for {what}", where=f"s3://{self.admitted.bucket}"):
                try:
                    answer = s3.get_object(Bucket=self.admitted.bucket, Key=key)
                    return bytes(answer["Body"].read(1 << 20))
                except ClientError as error:
                    if error.response.get("Error", {}).get("Code") != "NoSuchKey":
                        raise
            if self.clock.monotonic() >= until:
                raise Waiting(
                    f"waited {READY_S / 60:.0f} minutes for {what}",
                    where=f"s3://{self.admitted.bucket}/{key}",
                    next_command=command("down", self.admitted.plan_path),
                )
            self.clock.sleep(5)

    def _inner(self, host: SSHHost) -> Deadline:
        try:
            said = host.run(
                ["sh", "-c", f"systemctl is-enabled {TIMER} && systemctl is-active {TIMER} && "
                 f"grep -x 'deadline=[0-9]*' {GUARD}"],
                timeout_s=30,
            ).stdout.split()  # fmt: skip
        except HarnessError as error:
            said = [error.what]
        return inner_deadline(host.name, said, self.deadline_utc)


def inner_deadline(name: str, said: list[str], deadline_utc: str) -> Deadline:
    """What a host's own words say of its timer; its user data rounds the deadline up. Pure."""
    wanted = f"deadline={int(whole_second(parse_utc(deadline_utc)).timestamp())}"
    return Deadline(
        kind="inner",
        applies=True,
        at_utc=deadline_utc,
        armed=said == ["enabled", "active", wanted],
        proof=f"{name}: {TIMER} {', '.join(said)}" + ("" if wanted in said else f", not {wanted}"),
    )
