"""`harness fetch`: a finished run's candidates and evidence, wherever its folder was carried."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from tests.study.conftest import Desk
from trainer import contract


def test_candidates_and_evidence_come_back_whole_and_once(finished: Desk, tmp_path: Path) -> None:
    into = tmp_path / "there"
    done = finished.harness("fetch", str(finished.latest), "--into", str(into), "--json")
    assert done.code == 0, done.err
    rows = json.loads(done.out)
    assert all(row["moved"] for row in rows)
    train = json.loads((finished.latest / "receipts" / "train.json").read_text())
    for arm in train["arms"]:
        weights = into / "candidates" / arm["arm"] / "model.safetensors"
        assert contract.parameter_root(weights) == arm["candidate"]["parameter_root"]
    seal = json.loads((finished.latest / "receipts" / "seal.json").read_text())
    assert contract.hash_file(into / "evidence.tar.gz")[0] == seal["envelope"]["sha256"]
    weights.write_bytes(b"x" * weights.stat().st_size)  # the same size
    again = finished.harness("fetch", str(finished.latest), "--into", str(into), "--json")
    assert [row["path"] for row in json.loads(again.out) if row["moved"]] == [str(weights)]


def test_from_another_folder_with_one_arm_and_a_broken_object(
    finished: Desk, tmp_path: Path
) -> None:
    runs = tmp_path / "carried"
    shutil.copytree(finished.latest, runs / "toy" / "one")
    shutil.copytree(finished.runs / "store", runs / "store")
    record = runs / "toy" / "one" / "store.json"
    contract.write_json(
        record, {"schema": "harness/store/1", "kind": "folder", "path": "/not/here"}
    )
    run = str(runs / "toy" / "one")
    done = finished.harness("fetch", run, "--arm", "pair")
    assert done.code == 0 and "candidates/pair/model.safetensors" in done.out
    assert "single" not in done.out and "evidence" not in done.out
    assert finished.harness("fetch", run, "--arm", "none").code == 2
    shutil.rmtree(runs / "toy" / "one" / "fetched")
    seal = json.loads((finished.latest / "receipts" / "seal.json").read_text())
    digest = seal["envelope"]["sha256"]
    stored = runs / "store" / "objects" / digest[:2] / digest
    stored.chmod(0o644)
    stored.write_bytes(b"x" * stored.stat().st_size)
    broken = finished.harness("fetch", run, "--evidence")
    assert broken.code == 5 and "has the hash" in broken.err
    stored.unlink()
    assert finished.harness("fetch", run, "--evidence").code == 5


def test_a_folder_that_is_no_run_is_bad_input(finished: Desk, tmp_path: Path) -> None:
    done = finished.harness("fetch", str(tmp_path))
    assert done.code == 2 and "run.json" in done.err
