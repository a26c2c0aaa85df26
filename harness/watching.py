"""Looking at a run from outside, from any machine that has its folder and the login key."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.errors import BadInput, HarnessError
from harness.fleet.protocol import FleetSource
from harness.fleet.sources import Fleets, FleetTerms
from harness.group_job import SAMPLE
from harness.hosts.protocol import Host
from harness.run import Place, RunRecord, admitted_fleet, choice_of
from harness.strict import load_file

PIECE = 1 << 20
PATIENCE_S = 15.0
"""Whoever looks does not want to wait for a host that is gone."""
_ENDED = ("exited", "lost", "absent")


def newest(runs: Path, name: str = "") -> list[Place]:
    """The newest run of one plan, or of each. Raises BadInput when there is none that is whole."""
    found, damaged = look(runs, name)
    if damaged and not found:
        raise damaged[0]
    return found


def look(runs: Path, name: str = "") -> tuple[list[Place], list[BadInput]]:
    """The newest run of one plan, or of each, and what is wrong with those that are damaged.

    Raises BadInput when there is neither.
    """
    folders = [runs / name] if name else sorted(p for p in runs.glob("*") if p.is_dir())
    found: list[Place] = []
    damaged: list[BadInput] = []
    for folder in folders:
        link = folder / "latest"
        if not link.exists():
            continue
        try:
            found.append(Place(link.resolve(), load_file(RunRecord, link / "run.json")))
        except BadInput as error:  # it stops nothing but its own run
            error.what = f"this is no run of ours, or a damaged one: it {error.what}"
            damaged.append(error)
    if not found and not damaged:
        raise BadInput(
            f"there is no run of '{name}'" if name else "there are no runs",
            where=str(runs),
            next_command="harness run plans/quickstart/plan.json --local",
        )
    return found, damaged


@contextmanager
def fleet_of(place: Place) -> Iterator[FleetSource]:
    """The run's fleet, its connections closed in the end. Raises BadInput before it has one."""
    admitted = admitted_fleet(place)
    if admitted is None:
        raise BadInput(
            "this run has no hosts yet", where=str(place.folder), next_command="harness status"
        )
    count = len(list((place.folder / "fleet" / "hosts").glob("host-*")))
    fleets = Fleets(choice_of(place))
    try:
        yield fleets.open(
            FleetTerms(
                place.folder, admitted.fleet, admitted.deadline_utc, count, patience_s=PATIENCE_S
            )
        )
    finally:
        fleets.close()


def running(place: Place) -> tuple[list[str], str]:
    """Jobs that run now, by host, and the deadline; a host that cannot be asked is said so."""
    admitted = admitted_fleet(place)
    if admitted is None or place.finished:
        return [], admitted.deadline_utc if admitted else ""
    found: list[str] = []
    with fleet_of(place) as fleet:
        for host in fleet.hosts():
            try:
                states = [host.state(job) for job in host.jobs() if not job.startswith(SAMPLE)]
            except HarnessError as error:
                found.append(f"{host.name} cannot be asked ({error.what})")
                continue
            found += [f"{one.id} on {host.name}" for one in states if one.status == "running"]
    return found, admitted.deadline_utc


def host_named(fleet: FleetSource, name: str) -> Host:
    """The host of a slot's name or number. Raises BadInput."""
    wanted = f"host-{name}" if name.isdigit() else name
    for host in fleet.hosts():
        if host.name == wanted:
            return host
    known = ", ".join(host.name for host in fleet.hosts())
    raise BadInput(f"there is no such host; there are {known}", where=name)


def log_job(host: Host, arm: str) -> str:
    """The newest attempt of an arm's job on a host. Raises BadInput."""
    pattern = re.compile(rf"train\.{re.escape(arm)}\.([0-9]+)")
    numbers = [int(m.group(1)) for job in host.jobs() if (m := pattern.fullmatch(job))]
    if not numbers:
        raise BadInput(f"no attempt of the arm '{arm}' has begun here", where=host.name)
    return f"train.{arm}.{max(numbers)}"


def log_pieces(host: Host, job_id: str) -> Iterator[bytes]:
    """The log from its beginning; b'' when there is nothing new yet; ends when the job has."""
    offset = 0
    while True:
        over = host.state(job_id).status in _ENDED
        piece = host.read(f"jobs/{job_id}/log", offset=offset, limit=PIECE)
        offset += len(piece)
        if piece:
            yield piece
        elif over:
            return
        else:
            yield b""


def kept_log(place: Place, arm: str, host: str) -> Path:
    """The newest log of an arm that was fetched from a host. Raises BadInput."""
    found = list((place.folder / "logs").glob(f"train.{arm}.*-{host}.log"))
    if not found:
        kept = sorted(path.name for path in (place.folder / "logs").glob("train.*.log"))
        raise BadInput(
            f"no log of the arm '{arm}' on {host} is kept here (kept: {', '.join(kept) or 'none'})",
            where=str(place.folder / "logs"),
            next_command="harness logs ARM RANK",
        )
    return max(found, key=lambda path: int(path.name.rsplit("-host-", 1)[0].rsplit(".", 1)[1]))
