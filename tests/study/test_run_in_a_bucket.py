"""A whole study whose hosts keep their objects in a bucket: moved by the hosts, read back by one.

The hosts are workers on this computer with credentials of their own; the bucket is a real S3 server
on it. From preserve on the fleet calls itself the stack's.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from harness import pipeline
from harness.clock import Clock
from harness.display.progress import make_progress
from harness.errors import Leaked, Waiting
from harness.fetch import fetch
from harness.fleet.choice import FleetChoice
from harness.fleet.local import LocalFleet
from harness.fleet.protocol import FleetSource
from harness.fleet.sources import Fleets, FleetTerms
from harness.onhost.s3objects import S3Objects
from harness.plan import load_plan
from harness.receipts import PreserveReceipt, PushReceipt, TrainReceipt
from harness.run import find_place, open_study
from harness.store.folder import FolderStore
from harness.store.mirrored import MirroredStore
from harness.store.s3 import S3Store
from harness.study import Study
from tests.study.conftest import MakeDesk
from tests.unit.store.bucket_server import BucketServer, refuse
from trainer import contract


@dataclass
class NamedStack(Fleets):
    """Local workers under the stack's name."""

    def open(self, terms: FleetTerms) -> FleetSource:
        return LocalFleet(terms.run_folder, terms.count, terms.fleet_id, terms.deadline_utc)


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[BucketServer]:
    """Credentials are in the home folder, where hosts find them too; none is in the environment."""
    home = tmp_path / "home"
    (home / ".aws").mkdir(parents=True)
    keys = "aws_access_key_id = test\naws_secret_access_key = test-only-value\n"
    (home / ".aws" / "credentials").write_text(f"[default]\n{keys}")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    running = BucketServer()
    yield running
    running.stop()


def stages(first: str, last: str) -> tuple[pipeline.Stage, ...]:
    names = [str(each.name) for each in pipeline.STAGES]
    return pipeline.STAGES[names.index(first) : names.index(last) + 1]


def begun(make_desk: MakeDesk, objects: S3Objects) -> Study:
    """A study whose bucket is known once its fleet stands."""
    desk = make_desk()
    assert desk.harness("prepare", str(desk.plan)).code == 0
    loaded = load_plan(desk.plan)
    place = find_place(loaded, desk.runs)
    assert place is not None
    progress = make_progress(sys.stderr, as_json=True)
    study = open_study(loaded, place, desk.runs, progress, Clock())
    bucket = S3Store(objects.place)

    def known() -> S3Store | None:
        return bucket if pipeline.recorded(study, "provision") else None

    return replace(study, store=MirroredStore(FolderStore(desk.runs / "store"), known))


def test_every_object_is_in_the_bucket_versioned_and_read_back_by_a_host(
    make_desk: MakeDesk, server: BucketServer
) -> None:
    objects = server.make("study-bucket")
    study = begun(make_desk, objects)
    done = pipeline.advance(study, stages("prepare", "seal"))
    pushed, trained = done.of(PushReceipt), done.of(TrainReceipt)
    assert pushed.stored and all(each.version for each in pushed.stored)
    weights = [each for arm in trained.arms for each in arm.candidate.files]
    assert weights and all(each.version for each in weights)
    here = FolderStore(study.runs / "store")
    assert not any(here.has(each.sha256) for each in weights if "model" in each.name)
    stack = replace(study, fleets=NamedStack(FleetChoice("stack")))

    server.rules.append(refuse(400, "ExpiredToken", method="GET", after=3))
    with pytest.raises(Waiting, match="credentials expired"):
        pipeline.advance(stack, stages("prepare", "preserve"))
    server.rules.clear()
    assert pipeline.recorded(stack, "preserve") is None, "a receipt was written"

    whole = server.held(objects, weights[0].sha256)
    server.harm(objects, weights[0].sha256, bytes([whole[0] ^ 1]) + whole[1:])
    with pytest.raises(Leaked, match="is corrupt"):
        pipeline.advance(stack, stages("prepare", "preserve"))
    assert pipeline.recorded(stack, "preserve") is None
    server.harm(objects, weights[0].sha256, whole)

    preserved = pipeline.advance(stack, stages("prepare", "preserve")).of(PreserveReceipt)
    assert preserved.store == "s3" and "host-1 of the fleet" in preserved.reader
    assert "again from the operator's computer" in preserved.reader
    assert all(each.ok and each.version for each in preserved.objects)
    assert preserved.retention is not None and preserved.retention.continues
    assert float(preserved.retention.usd_a_month or "0") > 0
    assert preserved.sample[0].name == "evidence.tar.gz"
    assert {each.sha256 for each in preserved.sample} <= {e.sha256 for e in preserved.objects}
    assert {row[0] for row in objects.list()} >= {each.sha256 for each in preserved.objects}
    seen = Counter(row["VersionId"] for row in objects.client.list_object_versions(
        Bucket="study-bucket")["Versions"])  # fmt: skip
    assert len(seen) == len(list(objects.list())), "an object was written twice"

    pipeline.advance(study)  # ends the workers; the bucket stays
    found = fetch(study.folder, study.folder / "fetched", "all")
    assert all(each.moved for each in found)
    root = contract.parameter_root(study.folder / "fetched/candidates/pair/model.safetensors")
    assert root == next(a for a in trained.arms if a.arm == "pair").candidate.parameter_root
    study.close()
