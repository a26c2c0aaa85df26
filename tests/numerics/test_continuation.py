"""Killed anywhere, an arm goes on from its last whole checkpoint and ends bit for bit the same."""

from __future__ import annotations

import json
import shutil
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.numerics import killing, tiny
from tests.numerics.killing import Kill
from tests.numerics.ranks_pool import run_apart
from trainer.contract import read_json, read_lines

UPDATES = 9
EXCHANGES: dict[str, dict[str, Any]] = {
    "none": {"kind": "none"},
    "dense": {"kind": "dense"},
    "powersgd": tiny.powersgd(rank=2, dense_updates=3),
    "local": tiny.powersgd(rank=2, dense_updates=1, residual="local"),
    "lean": tiny.powersgd(
        rank=2,
        dense_updates=1,
        factors="bf16",
        dense_precision="bf16",
        warmup={"updates": 4, "rank": 4},
    ),
    "windows": {"kind": "local-windows", "window": 3, "outer_lr": 0.7, "outer_momentum": 0.9},
}


class Arm:
    """Attempts at one arm."""

    def __init__(self, folder: Path, model: Path, name: str, **changes: Any) -> None:
        self.folder, self.model = folder, model
        self.workers = 1 if name == "none" else 2
        changes = {"checkpoint": {"every_updates": 2}} | changes
        self.recipe = tiny.train_recipe(updates=UPDATES, exchange=EXCHANGES[name], **changes)
        documents = tiny.draw_documents(8 * UPDATES, seed=31)
        schedule = [list(range(start, start + 8)) for start in range(0, len(documents), 8)]
        self.inputs = tiny.write_inputs(folder / "in", documents, schedule)

    def attempt(self, out: str, *resume: str, kill: Kill | None = None) -> list[int]:
        """Exit statuses by rank. With `kill`, that every rank is gone."""
        path = self.folder / f"{out}.json"
        path.write_text(json.dumps(self.recipe))
        port = free_port()
        argvs = [
            [
                "--recipe", str(path), "--inputs", str(self.inputs), "--model", str(self.model),
                "--out", str(self.folder / f"{out}-{rank}"), "--node-rank", str(rank),
                "--nodes", str(self.workers), "--address", "127.0.0.1", "--port", str(port),
                "--interface", "lo",
                *(text for each in resume for text in ("--resume", self.out(each, rank))),
            ]
            for rank in range(self.workers)
        ]  # fmt: skip
        try:
            return run_apart(killing.launch, self.workers, argvs, port, kill)
        except AssertionError as error:
            if kill is None or "a rank died" not in str(error):
                raise
            return []

    def out(self, name: str, rank: int) -> str:
        return str(self.folder / f"{name}-{rank}")

    def said(self, out: str, rank: int) -> str:
        """Standard error."""
        return (self.folder / f"{out}.json.{rank}.err").read_text()

    def result(self, out: str) -> dict[str, Any]:
        """What must not depend on kills, of all ranks."""
        found = {}
        for rank in range(self.workers):
            folder = Path(self.out(out, rank))
            body = read_json(folder / f"receipt-{rank}.json")["body"]
            for name in ("checkpoints", "resumed_from"):
                body.pop(name, None)
            timed = {"seconds", "exchange_seconds"}
            lines = read_lines(folder / f"losses-{rank}.jsonl")
            found[str(rank)] = {
                "body": body,
                "losses": [{k: v for k, v in line.items() if k not in timed} for line in lines],
            }
            assert not (folder / f"checkpoint-{rank}").exists(), "nobody needs it any more"
        return found

    def resumed_from(self, out: str) -> int | None:
        body = read_json(Path(self.out(out, 0)) / "receipt-0.json")["body"]
        found: int | None = body["resumed_from"]
        return found


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture(scope="module")
def unbroken(
    model_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], dict[str, Any]]:
    """The result of an arm that nobody disturbs, once for each exchange."""
    known: dict[str, dict[str, Any]] = {}

    def result(name: str) -> dict[str, Any]:
        if name not in known:
            arm = Arm(tmp_path_factory.mktemp(name), model_folder, name)
            assert arm.attempt("whole") == [0] * arm.workers
            known[name] = arm.result("whole")
        return known[name]

    return result


@pytest.mark.parametrize(
    ("name", "kill", "from_update"),
    [
        ("none", Kill(0, "update", 1), None),
        ("none", Kill(0, "update", 5), 4),
        ("none", Kill(0, "writing", 6), 4),
        ("none", Kill(0, "candidate", UPDATES), 8),
        ("dense", Kill(1, "update", 7), 6),
        ("dense", Kill(0, "writing", 4), 2),
        ("powersgd", Kill(0, "update", 5), 4),
        ("powersgd", Kill(1, "writing", 6), 4),
        ("powersgd", Kill(1, "removing", 4), 4),
        ("local", Kill(0, "removing", 6), 6),
        ("lean", Kill(1, "update", 3), 2),
        ("lean", Kill(0, "update", 5), 4),
        ("lean", Kill(0, "update", 7), 6),
        ("windows", Kill(1, "update", 5), 4),
        ("windows", Kill(0, "writing", 8), 6),
    ],
)
def test_killed_it_goes_on_and_ends_the_same(
    name: str,
    kill: Kill,
    from_update: int | None,
    model_folder: Path,
    tmp_path: Path,
    unbroken: Callable[[str], dict[str, Any]],
) -> None:
    arm = Arm(tmp_path, model_folder, name)
    assert arm.attempt("first", kill=kill) == []
    assert not (tmp_path / "first-0" / "receipt-0.json").exists()
    assert arm.attempt("second", "first") == [0] * arm.workers
    assert arm.result("second") == unbroken(name)
    resumed = arm.resumed_from("second")
    # The write before the kill may not have ended: then an older one is gone on from.
    assert resumed in ({from_update, (from_update or 0) - 2, None} if from_update else {None})


def test_two_kills_and_a_damaged_checkpoint(
    model_folder: Path, tmp_path: Path, unbroken: Callable[[str], dict[str, Any]]
) -> None:
    arm = Arm(tmp_path, model_folder, "none")
    arm.attempt("first", kill=Kill(0, "update", 5))
    arm.attempt("second", "first", kill=Kill(0, "writing", 8))
    held = sorted(
        (int(path.name.split("-")[1]), path) for path in tmp_path.glob("*/checkpoint-0/update-*")
    )
    newest = held[-1][1] / "state.safetensors"
    data = bytearray(newest.read_bytes())
    data[len(data) // 2] ^= 1
    newest.write_bytes(data)
    assert arm.attempt("third", "first", "second") == [0]
    assert arm.result("third") == unbroken("none")
    assert arm.resumed_from("third") == held[-2][0] < held[-1][0]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"clip_norm": 0.25}, "/recipe/clip_norm was 0.5 and is 0.25"),
        ({"exchange": tiny.powersgd(rank=3)}, "/recipe/exchange/rank was 2 and is 3"),
    ],
)
def test_another_recipe_is_refused(
    changes: dict[str, Any], says: str, model_folder: Path, tmp_path: Path, killed: Arm
) -> None:  # fmt: skip
    was = killed.recipe
    killed.recipe = {**was, **changes}
    try:
        refused(killed, says)
    finally:
        killed.recipe = was


@pytest.fixture(scope="module")
def killed(model_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Arm:
    """A pair with checkpoints that nobody changes."""
    arm = Arm(tmp_path_factory.mktemp("killed"), model_folder, "powersgd")
    arm.attempt("first", kill=Kill(0, "update", 5))
    return arm


def refused(arm: Arm, says: str) -> None:
    """Every rank ends with 2, or leaves because its peer did."""
    with pytest.raises(AssertionError, match="a rank died"):
        arm.attempt("again", "first")
    assert any(says in arm.said("again", rank) for rank in range(2))
    assert not (arm.folder / "again-0" / "receipt-0.json").exists()


def test_other_inputs_are_refused(tmp_path: Path, killed: Arm) -> None:
    was = killed.inputs
    killed.inputs = Path(shutil.copytree(was, tmp_path / "other"))
    corpus = killed.inputs / "train.clean.jsonl"
    corpus.write_text(corpus.read_text().replace('"weight": 8.0', '"weight": 4.0', 1))
    try:
        refused(killed, "/inputs/train.clean.jsonl was")
    finally:
        killed.inputs = was


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("workers", 3, "/workers was 3 and is 1"),
        ("source_sha256", "0" * 64, "/source_sha256 was 000000000000... and is"),
        ("model_root", "0" * 64, "/model_root was 000000000000... and is"),
    ],
)
def test_what_another_world_wrote_is_refused(
    field: str, value: Any, says: str, model_folder: Path, tmp_path: Path
) -> None:  # fmt: skip
    arm = Arm(tmp_path, model_folder, "none")
    arm.attempt("first", kill=Kill(0, "update", 5))
    for path in tmp_path.glob("first-0/checkpoint-0/*/position.json"):
        position = read_json(path)
        position["identity"][field] = value
        path.write_text(json.dumps(position))
    assert arm.attempt("second", "first") == [2]
    said = arm.said("second", 0)
    assert says in said and "Traceback" not in said


def test_the_receipt_says_what_checkpoints_cost(model_folder: Path, tmp_path: Path) -> None:
    arm = Arm(tmp_path, model_folder, "dense", preserve="full-state")
    assert arm.attempt("one") == [0, 0]
    for rank in range(2):
        folder = Path(arm.out("one", rank))
        body = read_json(folder / f"receipt-{rank}.json")["body"]
        assert [each["update"] for each in body["checkpoints"]] == [2, 4, 6, 8]
        for each in body["checkpoints"]:
            assert 0 < each["copy_seconds"] <= each["stall_seconds"]
            assert each["bytes"] > 12 * body["parameters"] and each["write_seconds"] > 0
        assert body["resumed_from"] is None
        position = read_json(folder / f"state-{rank}" / "position.json")
        assert position["update"] == UPDATES
        assert position["identity"]["rank"] == rank


def test_without_the_field_nothing_is_written(model_folder: Path, tmp_path: Path) -> None:
    arm = Arm(tmp_path, model_folder, "none")
    del arm.recipe["checkpoint"]
    assert arm.attempt("one", kill=Kill(0, "update", 5)) == []
    assert not list(tmp_path.glob("one-0/checkpoint-*"))
    assert arm.attempt("two", "one") == [0]
    body = read_json(tmp_path / "two-0" / "receipt-0.json")["body"]
    assert "checkpoints" not in body and "resumed_from" not in body


def test_packed_rows_go_on_too(model_folder: Path, tmp_path: Path) -> None:
    packed = {"compiled": False, "residual": "fp32", "head": "fp32"}
    arms = []
    for name in ("whole", "broken"):
        (tmp_path / name).mkdir()
        arms.append(Arm(tmp_path / name, model_folder, "powersgd", packed=packed, microbatch=128))
    whole, broken = arms
    assert whole.attempt("one") == [0, 0]
    assert broken.attempt("one", kill=Kill(1, "update", 5)) == []
    assert broken.attempt("two", "one") == [0, 0]
    assert broken.resumed_from("two") in (2, 4)
    assert broken.result("two") == whole.result("one")
