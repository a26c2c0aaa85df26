"""push: trainer, helper, environment, seed model and prepared inputs onto every host."""

from __future__ import annotations

from pathlib import Path

from harness import environments, source
from harness.departure import TimeToLeave, while_there_is_time
from harness.display import words
from harness.errors import Refused, command
from harness.hosts.protocol import Host
from harness.inputs.layout import is_operator_side
from harness.onhost.s3place import HELPER_ENVIRONMENT, REQUIREMENTS
from harness.prepared import Prepared
from harness.receipts import Line, PrepareReceipt, ProvisionReceipt, PushedHost, PushReceipt
from harness.stages.machines import read_ahead_lines
from harness.stages.stamp import Stamp
from harness.staging import bring, moved, on_every, reaches_store
from harness.store.choose import write_record
from harness.store.mirrored import MirroredStore
from harness.store.protocol import Artifact
from harness.strict import Model, load_file
from harness.study import Receipts, Study
from trainer import contract

ENVIRONMENT_S = 3600.0


class Moved(Model):
    """Outcome of one transfer."""

    sha256: str
    moved_bytes: int


class Built(Model):
    """Outcome of building or finding the environment."""

    path: str
    manifest: dict[str, str]


def host_files(files: tuple[Artifact, ...]) -> tuple[Artifact, ...]:
    """The prepared files that hosts need; answers and texts stay on the operator's side."""
    return tuple(each for each in files if not is_operator_side(each.name))


def push(study: Study, done: Receipts, stamp: Stamp) -> PushReceipt:
    """Bring every host to the bound state. Raises Refused when a hash on a host differs. Past the
    point of no return the receipt holds no host, and what the store has is all there is."""
    prepared = load_file(Prepared, study.prepared_path)
    tree = source.gather(study.loaded, study.work / "source")
    if tree.sha256 != prepared.source_sha256:
        raise Refused(
            "the trainer or the on-host helper changed after prepared.json was committed",
            where=f"{study.prepared_path}#/source_sha256",
            next_command=command("init", "NEW-NAME", "--from", study.loaded.path),
        )
    receipt = done.of(PrepareReceipt)
    stored = _into_bucket(study, receipt)
    write_record(study.store, study.folder)

    def everywhere() -> tuple[tuple[Line, ...], tuple[PushedHost, ...]]:
        hosts = study.fleet(done.of(ProvisionReceipt)).hosts()
        disks = read_ahead_lines(study, hosts, "staging")
        return disks, on_every(
            hosts,
            lambda host: bind(study, host, tree, prepared, receipt, key=f"push/{host.name}"),
        )

    try:
        disks, pushed = while_there_is_time(study, done, everywhere)
    except TimeToLeave as left:
        if study.development:
            raise
        return PushReceipt(**stamp.close(), hosts=(), stored=stored, incomplete=left.incomplete)
    return PushReceipt(
        **stamp.close(),
        notes=tuple(f"{each.host}, {each.check}: {each.observed}" for each in disks if not each.ok),
        hosts=pushed,
        stored=stored,
        lines=disks,
    )


def _into_bucket(study: Study, receipt: PrepareReceipt) -> tuple[Artifact, ...]:
    """What was prepared before there was a bucket, written once; returned with its versions."""
    if not isinstance(study.store, MirroredStore):
        return ()
    study.progress.note("prepared inputs and seed model into the bucket")
    return study.store.mirror(
        (*receipt.prepared_files, *receipt.seed_files, *(receipt.parent_files or ())[:1])
    )


def bind(
    study: Study,
    host: Host,
    tree: source.Source,
    prepared: Prepared,
    receipt: PrepareReceipt,
    *,
    key: str,
) -> PushedHost:
    """Bring a host to the bound state, its effects in the journal under `key`; what is there
    already and has the right hash is not moved. Raises Refused when a hash differs."""
    study.progress.note(f"{host.name}: trainer, environment, model, inputs")
    began = study.clock.monotonic()
    _push_source(study, host, tree, key)
    host = host.with_helper(f"source/{tree.sha256}/helper")
    if study.fleet_kind == "stack":
        _helper_environment(study, host, tree, key)
    built = _environment(study, host, tree, key)
    seed = _fetch(study, host, "seed", receipt.seed_files, key)
    parent = receipt.parent_files
    born = _fetch(study, host, "parent", parent, key).moved_bytes if parent else 0
    inputs = _fetch(study, host, "inputs", host_files(receipt.prepared_files), key)
    size, seconds = seed.moved_bytes + born + inputs.moved_bytes, study.clock.monotonic() - began
    study.progress.note(f"{host.name}: {words.decimal_bytes(size)} moved, {seconds:.1f} s in all")
    return PushedHost(
        host=host.name,
        source_sha256=tree.sha256,
        environment=(prepared.requirements_sha256 or "") if built.path else "as-found",
        environment_path=built.path,
        environment_manifest=built.manifest,
        identity=prepared.identity,
        seed_files=receipt.seed_files,
        moved_bytes=size,
        seconds=round(seconds, 6),
    )


def _push_source(study: Study, host: Host, tree: source.Source, key: str) -> None:
    remote = f"source/{tree.sha256}"

    def look() -> Moved | None:
        answer = host.helper("tree", "hash", f"{host.work}/{remote}").stdout
        found = contract.parse(answer)["sha256"]
        return Moved(sha256=found, moved_bytes=0) if found == tree.sha256 else None

    def act() -> Moved:
        host.put(tree.folder, remote)
        there = look()
        if there is None:
            raise Refused("the pushed trainer has another hash on the host", where=host.name)
        return there

    study.journal.effect(
        f"{key}/source", Moved, intent={"sha256": tree.sha256}, act=act,
        adopt=lambda: None,
    )  # fmt: skip


def find_environment(study: Study, host: Host, tree: source.Source) -> Built:
    """The trainer's environment on a host: built when it is pinned and missing, else looked at."""
    if study.plan.environment == "as-found" or tree.requirements is None:
        shown = contract.parse(host.helper("environment", "describe").stdout)
        return Built(path="", manifest=shown["manifest"])
    digest, _ = contract.hash_file(tree.requirements)
    cache = Path(host.cache) if host.cache else study.cache
    folder = environments.environment_folder(cache, digest)
    requirements = f"{host.work}/source/{tree.sha256}/trainer/requirements.txt"
    answer = host.helper(
        "environment", "build", "--requirements", requirements, "--folder", str(folder),
        timeout_s=ENVIRONMENT_S,
    )  # fmt: skip
    return Built(path=str(folder), manifest=contract.parse(answer.stdout)["manifest"])


def _environment(study: Study, host: Host, tree: source.Source, key: str) -> Built:
    return study.journal.effect(
        f"{key}/environment", Built, intent={},
        act=lambda: find_environment(study, host, tree), adopt=lambda: None,
    )  # fmt: skip


def _helper_environment(study: Study, host: Host, tree: source.Source, key: str) -> None:
    """boto3 for the helper, pinned, where the helper looks for it."""
    requirements = f"source/{tree.sha256}/helper/harness/onhost/{REQUIREMENTS.name}"

    def act() -> Built:
        answer = host.helper(
            "environment", "build", "--requirements", f"{host.work}/{requirements}",
            "--folder", f"{host.work}/{HELPER_ENVIRONMENT}", timeout_s=ENVIRONMENT_S,
        )  # fmt: skip
        return Built(path=HELPER_ENVIRONMENT, manifest=contract.parse(answer.stdout)["manifest"])

    study.journal.effect(f"{key}/helper-environment", Built, intent={}, act=act, adopt=lambda: None)


def _fetch(study: Study, host: Host, folder: str, files: tuple[Artifact, ...], key: str) -> Moved:
    """Files of the store into a folder of the host, hash checked there."""
    listing = [each.to_json() for each in files]
    digest = contract.hash_of(listing)

    def act() -> Moved:
        local = study.work / f"listing-{folder}-{host.name}.json"
        contract.write_json(local, listing)
        return fetch_listing(study, host, folder, local, digest)

    return study.journal.effect(
        f"{key}/{folder}", Moved, intent={"listing": digest}, act=act,
        adopt=lambda: None,
    )  # fmt: skip


def ready_hosts(study: Study, done: Receipts) -> tuple[Host, ...]:
    """The fleet's hosts, each with the helper that was pushed to it."""
    pushed = done.of(PushReceipt).hosts
    hosts = study.fleet(done.of(ProvisionReceipt)).hosts()
    return tuple(
        host.with_helper(f"source/{each.source_sha256}/helper")
        for host, each in zip(hosts, pushed, strict=True)
    )


def fetch_listing(study: Study, host: Host, folder: str, listing: Path, digest: str) -> Moved:
    """Objects into one of the host's folders: it fetches them, or they are brought to it."""
    began = study.clock.monotonic()
    if not reaches_store(study, host):
        size = bring(study, host, folder, listing)
        moved(study, host, size, began)
        return Moved(sha256=digest, moved_bytes=size)
    remote = f"listings/{digest}.json"
    host.put(listing, remote)
    answer = host.helper(
        "stage", "get", "--store", study.store.address(), "--listing", f"{host.work}/{remote}",
        "--folder", f"{host.work}/{folder}", timeout_s=ENVIRONMENT_S,
    )  # fmt: skip
    shown = contract.parse(answer.stdout)
    size = int(shown.get("moved_bytes", 0)) if isinstance(shown, dict) else 0
    moved(study, host, size, began)
    return Moved(sha256=digest, moved_bytes=size)
