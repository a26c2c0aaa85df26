"""One fleet in the hands of this process: its journal, its engine, its cloud."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness.clock import Clock
from harness.cloud.clients import Aws
from harness.cloud.seen import SeenInstance
from harness.errors import HarnessError, Waiting, command
from harness.fleet.admitted import AdmittedFleet
from harness.fleet.outputs import StackOutputs
from harness.launch import ending, mirror, stack_file
from harness.launch.engine import Engine, EngineFailed, is_there
from harness.launch.fleets import FleetPlace
from harness.launch.refusals import essence
from harness.strict import Model, load_file
from trainer import contract

OUTPUTS = "outputs.json"
DISKS = "disks.json"


@dataclass
class Drive:
    """What `up`, `down` and `access` work with."""

    place: FleetPlace
    project: Path
    aws: Aws
    clock: Clock
    journal: mirror.FleetJournal
    say: Callable[[str], None]
    engine: Engine

    @property
    def admitted(self) -> AdmittedFleet:
        """The fleet as it is admitted now."""
        return self.place.admitted

    def change(self, **fields: object) -> None:
        """Change what an admission may change (`chosen`, `operator_cidr`), everywhere it stands."""
        admitted = AdmittedFleet.model_validate(
            {**self.admitted.model_dump(by_alias=True), **fields}
        )
        if admitted != self.admitted:
            self.journal.note("changed", {name: str(value) for name, value in fields.items()})
            self.place = self.place.with_admitted(admitted)
        stack_file.write_configuration(self.project, self.place.runs, admitted)

    def standing(self) -> StackOutputs | None:
        """The stack's outputs, when every host in them is one that EC2 shows alive with this
        fleet's tags and nothing else of the fleet lives."""
        if self.engine.pending():
            return None
        outputs = self.engine.outputs()
        if outputs is None or outputs.fleet != self.admitted.fleet:
            return None
        alive = {host.id for host in ending.living(ending.seen(self.aws, self.admitted))}
        same = alive == {host.instance_id for host in outputs.hosts}
        return outputs if same and len(alive) == self.admitted.count else None

    def open_gate(self) -> None:
        """Let the engine know that the gate is open, while the hosts still stand: the same program
        without protection and hook changes nothing else. Without an engine here it is said."""
        if not is_there():
            self.say("no Pulumi command is here, so `harness down` must remove the stack")
            return
        try:
            self.engine.settle()
            if self.standing() is not None:
                self.engine.up(self.say)
        except (EngineFailed, HarnessError) as failed:
            self.say(f"the engine does not know yet that the gate is open ({essence(str(failed))})")

    def destroy(self) -> None:
        """Remove everything but the bucket. Raises Waiting with the engine's reason."""
        try:
            self.engine.settle()
            pending = self.engine.pending()
            if pending:
                self.engine.forget_pending()
            if pending or self.engine.resources():
                self.engine.destroy(self.say)
        except EngineFailed as failed:
            raise Waiting(
                f"the engine could not remove the stack ({essence(str(failed))})",
                where=self.admitted.study,
                next_command="type the same command again, or: pulumi destroy",
            ) from None


@contextmanager
def driving(
    place: FleetPlace, aws: Aws, clock: Clock, say: Callable[[str], None]
) -> Iterator[Drive]:
    """Hold the fleet. Raises Waiting when another process drives it."""
    project = stack_file.project_of(place)
    with mirror.driving(place, clock, aws, say) as journal:
        drive: Drive

        def program() -> None:
            from harness.fleet.wiring import Wired, wiring_of
            from infra.program import stand_up

            wired = Wired(drive.place, drive.aws, drive.clock, drive.journal)
            stand_up(wiring_of(wired, drive.admitted))

        engine = Engine(project, place.admitted.study, place.admitted.fleet, program)
        drive = Drive(place, project, aws, clock, journal, say, engine)
        yield drive


class KnownDisks(Model):
    """Disks by instance, as seen while all hosts were alive: AWS forgets them with the host."""

    volumes: dict[str, tuple[str, ...]]


def known_disks(place: FleetPlace) -> dict[str, tuple[str, ...]]:
    """By instance; empty before the fleet was seen alive."""
    kept = place.folder / DISKS
    return load_file(KnownDisks, kept).volumes if kept.exists() else {}


def standing_outputs(
    place: FleetPlace, aws: Aws, clock: Clock, *, lost: Collection[str] = ()
) -> StackOutputs:
    """The stack's outputs, asked of the engine where there is one, each host rechecked with EC2.

    Hosts in `lost`, by name, need not live. Raises Waiting when there are none or another host is
    not alive; nothing is changed in the cloud.
    """
    admitted = place.admitted
    outputs = _outputs(place)
    if outputs is None or outputs.fleet != admitted.fleet:
        raise Waiting(
            "this fleet is admitted and does not stand",
            where=admitted.fleet,
            next_command=command("up", admitted.plan_path),
        )
    alive = {host.id: host for host in ending.living(ending.seen(aws, admitted))}
    gone = [
        host
        for host in outputs.hosts
        if host.instance_id not in alive and f"host-{host.slot}" not in lost
    ]
    if gone:
        raise Waiting(
            f"the host {gone[0].instance_id} of slot {gone[0].slot} is not alive any more",
            where=admitted.fleet,
            next_command=command("run", admitted.plan_path, "--lost", f"host-{gone[0].slot}: why"),
        )
    note_disks(place, alive.values())
    return outputs


def note_disks(place: FleetPlace, alive: Iterable[SeenInstance]) -> None:
    """Remember the disks of hosts that live; a host without any is not up yet."""
    seen = {each.id: each.volumes for each in alive if each.volumes}
    disks = KnownDisks(volumes={**known_disks(place), **seen})
    contract.write_json(place.folder / DISKS, disks.to_json())


def _outputs(place: FleetPlace) -> StackOutputs | None:
    """Of the engine, else as `harness up` left them in the fleet's folder."""
    kept = place.folder / OUTPUTS
    if is_there():
        engine = Engine(
            stack_file.project_of(place), place.admitted.study, place.admitted.fleet, _nothing
        )
        try:
            outputs = engine.outputs()
        except EngineFailed as failed:
            raise Waiting(
                f"the stack cannot be read ({essence(str(failed))})",
                where=place.admitted.study,
                next_command="pulumi stack output",
            ) from None
        if outputs is not None:
            contract.write_json(kept, outputs.to_json())
        return outputs
    return load_file(StackOutputs, kept) if kept.exists() else None


def _nothing() -> None:
    """No program: outputs are only read."""
