"""harness logs and harness ssh: what a rank says, and a shell on its host."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from harness import watching
from harness.cli.app import DEFAULT_RUNS, Runs, app, clock, finish
from harness.display.progress import Progress
from harness.display.sanitize import clean
from harness.errors import BadInput
from harness.finding import plan_name
from harness.hosts.protocol import Host
from harness.run import Place
from trainer import contract

POLL_S = 0.5
PlanName = Annotated[
    str,
    typer.Option(
        "--plan",
        help="A plan, by name or path; absent: the newest run of all.",
        parser=plan_name,
        metavar="PLAN",
    ),
]


@app.command()
def logs(
    arm: Annotated[str, typer.Argument(help="The arm's name.")],
    rank: Annotated[int, typer.Argument(help="The rank, from 0.", min=0)],
    follow: Annotated[bool, typer.Option("--follow", help="Go on until the job ends.")] = False,
    plan: PlanName = "",
    runs: Runs = DEFAULT_RUNS,
) -> None:
    """Print the log of an arm's newest attempt, with terminal codes taken out."""

    def work(progress: Progress) -> None:
        place = _place(runs, plan)
        if place.finished:
            _print_file(watching.kept_log(place, arm, f"host-{rank}"))
            return
        with watching.fleet_of(place) as fleet:
            host = watching.host_named(fleet, str(rank))
            _print(host, watching.log_job(host, arm), follow)

    finish(work, runs=runs)


@app.command()
def ssh(
    host: Annotated[str, typer.Argument(help="The host: host-0, or 0.")],
    plan: PlanName = "",
    runs: Runs = DEFAULT_RUNS,
) -> None:
    """Open a shell on a host of the newest run, with the pinned host key and nothing else."""

    def work(progress: Progress) -> None:
        place = _place(runs, plan)
        with watching.fleet_of(place) as fleet:
            argv = _shell(place, watching.host_named(fleet, host))
        sys.stdout.flush()
        os.execvp(argv[0], argv)

    finish(work, runs=runs)


def _place(runs: Path, plan: str) -> Place:
    return max(watching.newest(runs.resolve(), plan), key=lambda each: each.record.run)


def _shell(place: Place, host: Host) -> list[str]:
    """The ssh command. Raises BadInput for a worker on this computer."""
    from harness.hosts.ssh import SSHHost

    if not isinstance(host, SSHHost):
        raise BadInput("is a worker on this computer; its folder is there", where=host.work)
    login = host.link.login
    name = login.address if login.port == 22 else f"[{login.address}]:{login.port}"
    known = place.folder / f"known-{host.name}"
    contract.write_atomic(known, "".join(f"{name} {key}\n" for key in login.host_keys).encode())
    argv = ["ssh", "-p", str(login.port), "-o", f"UserKnownHostsFile={known}", "-o",
            "GlobalKnownHostsFile=/dev/null", "-o", "StrictHostKeyChecking=yes"]  # fmt: skip
    if login.key_file:
        argv += ["-i", login.key_file, "-o", "IdentitiesOnly=yes"]
    return [*argv, f"{login.user}@{login.address}"]


def _print(host: Host, job_id: str, follow: bool) -> None:
    rest = b""
    for piece in watching.log_pieces(host, job_id):
        if not piece:
            if not follow:
                break
            clock().sleep(POLL_S)
            continue
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            typer.echo(clean(line.decode("utf-8", "replace")))
        sys.stdout.flush()
    if rest:
        typer.echo(clean(rest.decode("utf-8", "replace")))


def _print_file(path: Path) -> None:
    for line in _lines(path):
        typer.echo(clean(line))


def _lines(path: Path) -> Iterator[str]:
    with open(path, encoding="utf-8", errors="replace", newline="\n") as handle:
        for line in handle:
            yield line.rstrip("\n")
