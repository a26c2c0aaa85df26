"""Admission to a fleet: everything that is decided before anything is launched."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness.admission import admit
from harness.clock import Clock
from harness.commitments import Repository
from harness.errors import BadInput, Refused, command
from harness.fleet.admitted import AdmittedFleet
from harness.fleet.tags import STUDY
from harness.launch import asked, earlier, operator, placements, stack_file
from harness.launch.fleets import FleetPlace, driving, fleet_places, fleets_folder
from harness.plan import LoadedPlan
from harness.plan.check import check_plan, require_sound
from harness.plan.hosts import AwsHosts, S3Store
from harness.plan.plan import Plan
from harness.prices import load_prices

if TYPE_CHECKING:
    from harness.cloud.clients import Aws


@dataclass(frozen=True)
class Admission:
    """What was admitted, where it was written, and what to know about it."""

    place: FleetPlace
    stack_file: Path
    notes: tuple[str, ...]


def admit_plan(
    loaded: LoadedPlan, runs: Path, aws: Aws, clock: Clock, *, address: str
) -> Admission:
    """Admit one launch of the plan: bound, deadline, image, placements, operator's address.

    Writes runs/fleets/FLEET/ and the stack's configuration; launches nothing. Raises BadInput and
    Refused before anything is written.
    """
    hosts = _aws(loaded)
    project = stack_file.project_folder(loaded.folder)
    prices = load_prices(hosts.region)
    places = fleet_places(runs)
    _require_none_open(places, loaded, clock)
    before = earlier.earlier_of(places, loaded.hash)
    require_sound(check_plan(loaded, prices=prices, fleet_kind="stack", earlier=before))
    bound = admit(loaded.plan, prices, "stack", before, next_command=command("check", loaded.path))
    cidr = operator.operator_cidr(address)
    account = asked.account_id(aws)
    require_nothing_there(aws, loaded.plan.name)
    image = asked.image(aws, hosts.image)
    offered = asked.offered(aws, hosts)
    possible = placements.placements(hosts, offered)
    bucket, prefix = store_place(loaded.plan, account, hosts.region)
    present = asked.bucket_present(aws, bucket, account)
    fleet = fleet_id(loaded.plan.name, clock)
    folder = fleets_folder(runs) / fleet
    _make(folder)
    admitted = AdmittedFleet(
        fleet=fleet,
        study=loaded.plan.name,
        plan_path=str(_short(loaded.path, project)),
        plan_hash=loaded.hash,
        source_commit=Repository(loaded.folder, made=False).tip("HEAD") or "not committed",
        account=account,
        region=hosts.region,
        attempt=len(before) + 1,
        deadline_utc=clock.after(loaded.plan.budget.deadline_s),
        count=hosts.count,
        placements=possible,
        one_zone=hosts.placement == "one-zone",
        network=hosts.network,
        image_id=image.id,
        image_name=image.name,
        volume=hosts.volume,
        operator_cidr=cidr,
        login_public_key=operator.make_login_key(folder / "login_key", fleet),
        bucket=bucket,
        bucket_present=present,
        prefix=prefix,
        traffic_gb_per_host=loaded.plan.budget.traffic_gb_per_host,
        budget_usd=loaded.plan.budget.ceiling_usd,
        bound=bound,
    )
    place = write_admission(folder, admitted, project, clock)
    written = stack_file.write_configuration(project, runs, admitted)
    return Admission(place, written, placements.left_out(hosts, offered))


def write_admission(
    folder: Path, admitted: AdmittedFleet, project: Path, clock: Clock
) -> FleetPlace:
    """The fleet's journal begins with its admission; admitted.json is written from it."""
    place = FleetPlace(folder, admitted)
    with driving(place, clock) as journal:
        journal.append("receipt", "admitted", admitted.to_json())
        journal.note("project", {"folder": str(project)})
        return place.with_admitted(admitted)


def fleet_id(study: str, clock: Clock) -> str:
    """A new fleet's id: at most 45 characters, so that names made from it fit AWS's limits."""
    stamp = clock.now().strftime("%Y%m%d-%H%M%S")
    return f"{study[:24].rstrip('-')}-{stamp}-{secrets.token_hex(2)}"


def store_place(plan: Plan, account: str, region: str) -> tuple[str, str]:
    """Bucket and prefix: the plan's, else the stack's own bucket and the plan's name.

    The stack's own bucket has one name an account and region, so that every study finds it.
    """
    chosen = plan.store if isinstance(plan.store, S3Store) else S3Store(kind="s3")
    own = hashlib.sha256(f"{account}/{region}".encode()).hexdigest()[:8]
    bucket = chosen.bucket or f"harness-{account}-{region}-{own}"
    return bucket, (chosen.prefix or plan.name).strip("/")


def require_nothing_there(aws: Aws, study: str) -> None:
    """Raises Refused when something with this study's tags runs or waits, whoever launched it."""
    from harness.cloud.observe import instances_by_tag

    seen = instances_by_tag(aws, {STUDY: study})
    left = [host for host in seen if host.fleet and not host.terminated]
    if left:
        first = left[0]
        raise Refused(
            f"{len(left)} host(s) of this study are still there, the first one {first.id} "
            f"({first.state}) of the fleet {first.fleet}",
            where=aws.region,
            next_command=command("sweep", "--region", aws.region),
        )


def _require_none_open(places: list[FleetPlace], loaded: LoadedPlan, clock: Clock) -> None:
    """One fleet of a study at a time: its stack and its deadline are one."""
    for place in places:
        if place.final or place.admitted.study != loaded.plan.name:
            continue
        ends = place.admitted.deadline_utc
        state = "is past its deadline and not ended" if place.expired(clock) else f"until {ends}"
        raise Refused(
            f"the fleet {place.admitted.fleet} of this study is there already ({state})",
            where=str(place.folder),
            next_command=command("down", loaded.path),
        )


def _aws(loaded: LoadedPlan) -> AwsHosts:
    if loaded.plan.hosts.aws is None:
        raise BadInput(
            "the plan declares no AWS hosts",
            where=f"{loaded.path}#/hosts/aws",
            next_command=command("run", loaded.path, "--local"),
        )
    return loaded.plan.hosts.aws


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, mode=0o700)
    except OSError as error:
        raise BadInput(f"cannot be made ({error.strerror})", where=str(folder)) from None


def _short(path: Path, project: Path) -> Path:
    whole = path.resolve()
    return whole.relative_to(project) if whole.is_relative_to(project) else whole
