"""harness run: the whole experiment, resumable."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harness import run as runs_of
from harness.attest.choice import Attesting, chosen
from harness.cli.admit import Address
from harness.cli.app import DEFAULT_RUNS, AsJson, PlanFile, Runs, app, clock, finish, with_runs
from harness.display.output import print_json, show
from harness.display.progress import Progress
from harness.display.tables import final_table
from harness.errors import BadInput, HarnessError, Incomplete, Leaked, command
from harness.fleet.choice import LOCAL, FleetChoice
from harness.lost import parse_statement
from harness.plan import LoadedPlan, load_plan
from harness.receipts import TerminateReceipt
from harness.results import Resources, Results
from harness.run import Place
from harness.strict import load_file


@app.command()
def run(
    plan: PlanFile,
    local: Annotated[
        bool, typer.Option("--local", help="Hosts are worker processes on this computer.")
    ] = False,
    hosts: Annotated[
        Path | None, typer.Option("--hosts", help="Hosts are your own machines, from this file.")
    ] = None,
    fleet: Annotated[
        str, typer.Option("--fleet", help="Join this living fleet (of an earlier plan, say).")
    ] = "",
    up: Annotated[
        bool, typer.Option("--up", help="Without a fleet: print the worst case and launch one.")
    ] = False,
    address: Address = "auto",
    keep_hosts: Annotated[
        bool, typer.Option("--keep-hosts", help="Do not end the hosts after preservation.")
    ] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Run a finished plan once more (a replication).")
    ] = False,
    abandon: Annotated[
        str | None,
        typer.Option("--abandon", help="Give up preservation, say why, and end the fleet."),
    ] = None,
    abandon_weights: Annotated[
        str | None,
        typer.Option("--abandon-weights", help="Keep all but the weights, and say why."),
    ] = None,
    lost: Annotated[
        list[str] | None,
        typer.Option("--lost", help="'host-1: why': it is gone for good; preserve the rest."),
    ] = None,
    notice: Annotated[
        str,
        typer.Option(
            "--notice",
            envvar="HARNESS_NOTICE",
            help="A command or web hook that is told what happens.",
        ),
    ] = "",
    sign: Annotated[
        Path | None,
        typer.Option(
            "--sign",
            envvar="HARNESS_SIGN",
            help="Sign the commitments with this ed25519 private key.",
        ),
    ] = None,
    timestamp: Annotated[
        str,
        typer.Option(
            "--timestamp",
            envvar="HARNESS_TIMESTAMP",
            help="Have the commitments time-stamped by this RFC 3161 authority (URL).",
        ),
    ] = "",
    timestamp_ca: Annotated[
        Path | None,
        typer.Option(
            "--timestamp-ca",
            envvar="HARNESS_TIMESTAMP_CA",
            help="The authority's root certificate (PEM).",
        ),
    ] = None,
    runs: Runs = DEFAULT_RUNS,
    as_json: AsJson = False,
) -> None:
    """Run the experiment to its report. The same command goes on where it stopped."""

    def work(progress: Progress) -> None:
        loaded, folder = load_plan(plan), runs.resolve()
        choice = _choice(local, hosts, fleet, keep_hosts)
        attesting = chosen(sign, timestamp, timestamp_ca)
        if abandon is not None:
            _abandon(loaded, folder, progress, choice, abandon, as_json)
            return
        if choice.kind == "stack":
            launch_for = address if up else ""
            _require_fleet(loaded, folder, choice, progress, launch_for, again=again, quiet=as_json,
                           attesting=attesting)  # fmt: skip
        place, _ = runs_of.run_plan(
            loaded, folder, progress, clock(), choice=choice, again=again, notice=notice,
            lost=[parse_statement(each) for each in lost or ()], attesting=attesting,
            no_weights=abandon_weights,
        )  # fmt: skip
        progress.close()
        results = _show(place, loaded, runs, as_json)
        if results.incomplete is not None:
            _end_incomplete(results, choice.command(loaded.path, "--again"), as_json)

    finish(
        work, as_json=as_json, runs=runs, still_runs=lambda: _still_runs(plan, runs, local, hosts)
    )


def _choice(local: bool, hosts: Path | None, fleet: str, keep_hosts: bool) -> FleetChoice:
    """Which hosts the words on the command line choose. Raises BadInput."""
    named = [word for word, given in (("--local", local), ("--hosts", hosts), ("--fleet", fleet))
             if given]  # fmt: skip
    if len(named) > 1:
        raise BadInput(f"{' and '.join(named)} exclude each other", where=named[1])
    if local:
        return LOCAL
    if hosts is not None:
        return FleetChoice("hosts-file", hosts_file=hosts)
    return FleetChoice("stack", fleet=fleet, keep_hosts=keep_hosts)


def _require_fleet(
    loaded: LoadedPlan, runs: Path, choice: FleetChoice, progress: Progress, address: str,
    *, again: bool, quiet: bool, attesting: Attesting,
) -> None:  # fmt: skip
    """A run that has no fleet yet needs a living one now: launched for this operator's `address`,
    unless it is ''. Raises Waiting with the next command."""
    place = runs_of.find_place(loaded, runs)
    begun = place is not None and not (again and place.finished)
    if place is not None and begun and runs_of.admitted_fleet(place) is not None:
        return
    if loaded.plan.hosts.aws is None:
        raise BadInput(
            "the plan declares no AWS hosts",
            where=f"{loaded.path}#/hosts/aws",
            next_command=command("run", loaded.path, "--local"),
        )
    from harness.launch.fleets import fleet_of_plan
    from harness.launch.joining import fleet_for

    if address and not choice.fleet:
        from harness.cli.up import launched

        runs_of.begin_plan(
            loaded, runs, progress, clock(), choice=choice, again=again, attesting=attesting
        )
        known = fleet_of_plan(runs, loaded.hash)
        launched(loaded, runs, address, progress, known, quiet=quiet)
    fleet_for(loaded, runs, choice.fleet, clock())


def _abandon(
    loaded: LoadedPlan, runs: Path, progress: Progress, choice: FleetChoice, why: str,
    as_json: bool,
) -> None:  # fmt: skip
    if not why.strip():
        raise BadInput("--abandon needs a reason, which the record keeps", where="--abandon")
    place = runs_of.abandon_run(loaded, runs, progress, clock(), why, choice=choice)
    progress.close()
    if as_json:
        print_json({"abandoned": place.record.run, "why": why})
        return
    typer.echo(f"Abandoned: {place.record.run}. Its fleet is ended; nothing more is preserved.")


def _end_incomplete(results: Results, again: str, as_json: bool) -> None:
    """Exit with the status of a study that is not whole; JSON says it in results already."""
    found = results.incomplete
    assert found is not None
    kind = Leaked if found.because == "lost-host" else Incomplete
    error = kind(
        f"the study is preserved and ended, and not whole: {found.why}",
        where=results.run,
        next_command=again,
    )
    if as_json:
        raise typer.Exit(error.exit_code)
    raise error


def _show(place: Place, loaded: LoadedPlan, runs: Path, as_json: bool) -> Results:
    results = load_file(Results, place.folder / "results.json")
    resources = load_file(Resources, place.folder / "resources.json")
    page = place.folder / "report" / "index.html"
    if as_json:
        print_json(
            {"results": results.to_json(), "resources": resources.to_json(), "report": str(page)}
        )
    else:
        show(final_table(results, resources, plan=loaded.plan, report=_short(page)))
        if resources.state == "stack still present":
            kept = any(host.ended_utc is None for host in resources.hosts)
            ended = load_file(TerminateReceipt, place.folder / "receipts" / "terminate.json").ended
            left = ended if kept else ("What is left of it costs nothing by itself.",)
            off = with_runs(command("down", loaded.path), runs)
            for line in ("The stack still stands.", *left, f"next: {off} (or: pulumi destroy)"):
                typer.echo(line)
    return results


def _short(path: Path) -> Path:
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def _still_runs(plan: Path, given: Path, local: bool, hosts: Path | None) -> str:
    """What goes on after Ctrl-C."""
    try:
        choice = _choice(local, hosts, "", False)
        if choice.kind == "stack":  # its hosts may stand before there is a run
            from harness.cli.up import still_there

            return still_there(plan, given, "run")
        loaded = load_plan(plan)
        place = runs_of.find_place(loaded, given.resolve())
        if place is None or place.finished:
            return "Nothing of ours runs."
        jobs, until = runs_of.still_running(place)
    except HarnessError:
        return ""
    again = with_runs(choice.command(plan), given)
    going = f"{', '.join(jobs)} still runs" if jobs else "no job runs now"
    ends = f"; the deadline at {until} ends the rest" if until else ""
    place_of = "On this computer" if choice.kind == "local" else "On your hosts"
    return f"{place_of} {going}{ends}; it costs 0 USD an hour. Go on with: {again}"
