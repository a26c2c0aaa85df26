"""preserve: every expected artifact read back whole by another process, near the store."""

from __future__ import annotations

from harness import preservation
from harness.clock import parse_utc
from harness.errors import Leaked
from harness.evidence_folder import named_files
from harness.given_up import weights_given_up
from harness.hosts.protocol import Host
from harness.preservation import Certificate
from harness.receipts import (
    ArmRecord,
    PrepareReceipt,
    PreserveReceipt,
    ProvisionReceipt,
    PushReceipt,
    SealReceipt,
    ServeReceipt,
)
from harness.retention import retention_of
from harness.stages.push import ready_hosts
from harness.stages.stamp import Stamp
from harness.store.protocol import Artifact
from harness.study import Receipts, Study


def preserve(study: Study, done: Receipts, stamp: Stamp) -> PreserveReceipt:
    """Read back the manifest that the receipts name.

    Hosts that the stack launched read in the bucket's region, and the operator reads a sample
    again itself. Raises Leaked when an object is not whole, Waiting when it cannot be read now.
    """
    given_up = weights_given_up(study.journal) is not None
    rows = manifest(done, weights=not given_up)
    certificate, reader = _read(study, done, rows)
    preservation.check_certificate(certificate, rows, study.store, reader=reader)
    _require_whole(study, certificate)
    sample: Certificate | None = None
    if study.fleet_kind == "stack":
        drawn = preservation.sample_of(rows, rows[-1], study.loaded.hash)
        study.progress.note(f"reading {len(drawn)} of the objects again from here")
        sample = preservation.read_here(study.store, drawn, study.work / "sample.json")
        preservation.check_certificate(sample, drawn, study.store, reader="this computer")
        _require_whole(study, sample)
        size = sum(each.bytes for each in sample.objects)
        reader += f"; {len(drawn)} of the objects ({size} bytes) again from the operator's computer"
    return PreserveReceipt(
        **stamp.close(),
        store=study.store.kind,
        reader_pid=certificate.pid,
        reader=reader,
        objects=certificate.objects,
        bytes=sum(each.bytes for each in certificate.objects),
        lost=_lost(done),
        not_kept=tuple(map(_not_kept, done.arms)) if given_up else None,
        read_seconds=certificate.seconds,
        sample=sample.objects if sample else (),
        sample_rule=preservation.SAMPLE_RULE if sample else None,
        retention=retention_of(
            study.store,
            days=study.plan.budget.retention_days,
            size=sum({each.sha256: each.bytes for each in certificate.objects}.values()),
            now=study.clock.now(),
        ),
    )


def _lost(done: Receipts) -> tuple[str, ...]:
    """What hosts that are gone for good held, of arms and of serving phases."""
    served = done.find(ServeReceipt)
    of_phases = (each for phase in (served.phases if served else ()) for each in phase.lost)
    return (*(each for one in done.unfinished for each in one.lost), *of_phases)


def _not_kept(record: ArmRecord) -> str:
    candidate = record.candidate
    size = sum(each.bytes for each in candidate.files)
    return f"{record.arm}: parameter root {candidate.parameter_root}, {size} bytes"


def manifest(done: Receipts, *, weights: bool) -> tuple[Artifact, ...]:
    """What must be preserved: inputs, candidates (unless their weights were given up), answers,
    losses, logs and, last, the archive."""
    candidates = [
        each.model_copy(update={"name": f"candidates/{arm.arm}/{each.name}"})
        for arm in done.arms
        for each in arm.candidate.files
        if weights
    ]
    pushed = done.find(PushReceipt)
    brought = {each.sha256: each.version for each in (pushed.stored if pushed else ())}
    prepared = [
        each if each.version else each.model_copy(update={"version": brought.get(each.sha256)})
        for each in done.of(PrepareReceipt).prepared_files
    ]
    return (*prepared, *candidates, *named_files(done), done.of(SealReceipt).envelope)


def _read(study: Study, done: Receipts, rows: tuple[Artifact, ...]) -> tuple[Certificate, str]:
    """The certificate, and who read."""
    listing = study.work / "manifest.json"
    standing = standing_hosts(study, done)
    if not standing:
        study.progress.note("reading everything back in another process")
        found = preservation.read_here(study.store, rows, listing)
        return found, "another process on this computer"
    host = standing[-1]  # not rank 0's host, which wrote the candidates
    study.progress.note(f"reading everything back on {host.name}")
    found = preservation.read_on(host, study.store, rows, listing)
    fleet = done.of(ProvisionReceipt).fleet
    return found, f"{host.name} of the fleet {fleet}, beside the bucket"


def standing_hosts(study: Study, done: Receipts) -> list[Host]:
    """Hosts that read beside the bucket: the stack's, while they stand. Those of a fleet whose
    deadline passed have ended, and what nothing was pushed to cannot read."""
    pushed = done.find(PushReceipt)
    if study.fleet_kind != "stack" or pushed is None or not pushed.hosts:
        return []
    deadline_utc = study.fleet(done.of(ProvisionReceipt)).deadline_utc
    if study.clock.now() >= parse_utc(deadline_utc):
        return []
    lost = study.lost()
    return [host for host in ready_hosts(study, done) if host.name not in lost]


def _require_whole(study: Study, certificate: Certificate) -> None:
    bad = [each for each in certificate.objects if not each.ok]
    if bad:
        raise Leaked(
            f"{len(bad)} of {len(certificate.objects)} preserved objects are not whole: "
            f"{bad[0].name} is {bad[0].fault} ({bad[0].sha256})",
            where=study.store.locate(bad[0].sha256),
            next_command=study.again(),
        )
