"""The executable itself: refusals, every task, two nodes under torchrun, and a node that dies."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.numerics import tiny, work
from tests.numerics.ranks_pool import run_alone
from trainer.contract import parameter_root, read_json, read_lines, tree_hash
from trainer.start import main

Arguments = Callable[..., list[str]]
Popen = Callable[..., subprocess.Popen[str]]


def refusal(argv: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert main(argv, work.ROOT / "trainer" / "launch") == 2
    said = capsys.readouterr().err
    assert said.startswith("trainer: ") and said.count("\n") == 1
    return said


FAULTS: dict[str, dict[str, Any]] = {
    "unknown fields: 'surprise'": {"surprise": 1},
    "'task' is 'sing'": {"task": "sing"},
    "'contract' is 'harness/contract/2'": {"contract": "harness/contract/2"},
    "'device' is 'tpu'": {"device": "tpu"},
    "'threads' is 0": {"threads": 0},
    "'updates' is True": {"updates": True},
    "'updates' is 2.0": {"updates": 2.0},
    "'microbatch' is '3'": {"microbatch": "3"},
    "'corpus' is '../clean'": {"corpus": "../clean"},
    "'clip_norm' is 0": {"clip_norm": 0},
    "'autocast' is 'fp8'": {"autocast": "fp8"},
    "'checkpointing' is 1": {"checkpointing": 1},
    "'preserve' is 'all'": {"preserve": "all"},
    "'optimizer' lacks the field 'kind'": {"optimizer": {}},
    "'schedule' is not an object": {"schedule": None},
    "'exchange' has unknown fields: 'rank'": {"exchange": {"kind": "none", "rank": 3}},
    "'head' is 'narrow'": {"packed": tiny.packed(head="narrow")},
    "'packed' is not an object": {"packed": None},
    "'residual' is 'bf16' and 'autocast' is null": {"packed": tiny.packed(residual="bf16")},
    "'factors' is 'bf16' and 'residual' is 'local'": {
        "exchange": tiny.powersgd(factors="bf16", residual="local")
    },
    "'residual' is 'global'": {"exchange": tiny.powersgd(residual="global")},
}


@pytest.mark.parametrize("says", FAULTS)
def test_a_wrong_recipe_is_refused_in_one_sentence(
    says: str, arguments: Arguments, capsys: pytest.CaptureFixture[str]
) -> None:
    assert says in refusal(arguments(tiny.train_recipe(**FAULTS[says])), capsys)


def test_a_missing_field_is_refused(
    arguments: Arguments, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in tiny.train_recipe():
        recipe = tiny.train_recipe()
        del recipe[name]
        assert f"'{name}'" in refusal(arguments(recipe), capsys)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"node_rank": 1}, "--node-rank 1 does not fit --nodes 1"),
        ({"port": 70000}, "--port 70000"),
        ({"nodes": 2}, "the exchange 'none' is for one node"),
        ({"interface": "nosuch0"}, "no interface nosuch0"),
        ({"nodes": "two"}, "invalid int value"),
        ({"inputs": "/nonexistent"}, "holds no train.clean.jsonl"),
        ({"model": "/nonexistent"}, "holds no model.safetensors"),
        ({"surprise": 1}, "unrecognized arguments"),
    ],
)
def test_wrong_arguments_are_refused(
    changes: dict[str, Any], says: str, arguments: Arguments, capsys: pytest.CaptureFixture[str]
) -> None:
    assert says in refusal(arguments(tiny.train_recipe(), **changes), capsys)


def test_duplicate_keys_are_refused(
    arguments: Arguments, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = arguments(tiny.train_recipe())
    Path(argv[1]).write_text('{"task": "train", "task": "check"}')
    assert "appears twice" in refusal(argv, capsys)


def test_one_node_tasks_refuse_two(
    arguments: Arguments, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = arguments(tiny.common("compare", against="x"), nodes=2)
    assert "runs on one node" in refusal(argv, capsys)


def test_a_dry_run_says_and_writes_nothing(
    arguments: Arguments, popen: Popen, tmp_path: Path
) -> None:
    process = popen([*arguments(tiny.train_recipe()), "--dry-run"])
    assert process.communicate() == ("", "")
    assert process.returncode == 0
    assert not (tmp_path / "out").exists()
    wrong = popen([*arguments(tiny.train_recipe(seed=1)), "--dry-run"])
    assert "'seed' is 1, not a text" in wrong.communicate()[1]
    assert wrong.returncode == 2


def test_train_writes_what_the_contract_lists(
    arguments: Arguments, tmp_path: Path, inputs_folder: Path, model_folder: Path
) -> None:
    argv = arguments(tiny.train_recipe())
    assert run_alone(work.launch, argv) == 0
    out = tmp_path / "out"
    receipt = read_json(out / "receipt-0.json")
    lines = read_lines(out / "losses-0.jsonl")
    schedule = read_json(inputs_folder / "schedule.json")["updates"]
    documents = tiny.draw_documents(24)
    used = [documents[place] for places in schedule for place in places]
    body = receipt["body"]
    assert body["parameter_root"] == parameter_root(out / "candidate" / "model.safetensors")
    assert receipt["model_root"] == parameter_root(model_folder / "model.safetensors")
    assert receipt["source_sha256"] == tree_hash(work.ROOT / "trainer")
    assert body["tokens"] == sum(len(document.tokens) for document in used)
    assert body["targets"] == sum(document.target_count for document in used)
    assert body["weighted_targets"] == sum(d.weight * d.target_count for d in used)
    assert [line["update"] for line in lines] == [1, 2, 3, 4]
    assert [line["lr"] for line in lines] == pytest.approx([0.005, 0.01, 0.00625, 0.0025])
    assert body["final_loss"] == lines[-1]["loss"] < lines[0]["loss"]
    timers = receipt["timers"]
    assert timers["update_sum"] <= timers["active"] <= timers["active_plus_checkpoint"]
    assert timers["active_plus_checkpoint"] <= timers["loop"] < timers["process"]
    assert timers["load"] + timers["loop"] < timers["process"]
    assert read_json(out / "heartbeat-0.json")["phase"] == "done"
    for name in ("config.json", "tokenizer.json"):
        assert (out / "candidate" / name).read_bytes() == (model_folder / name).read_bytes()


def test_probe_takes_the_largest_updates_and_keeps_nothing(
    arguments: Arguments, tmp_path: Path
) -> None:
    argv = arguments(tiny.train_recipe(task="probe", trial_updates=3))
    assert run_alone(work.launch, argv) == 0
    body = read_json(tmp_path / "out" / "receipt-0.json")["body"]
    assert (body["microbatch"], body["updates"], body["out_of_memory"]) == (3, 3, False)
    assert body["seconds_per_update"] > 0 and body["tokens_per_s"] > 0
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "heartbeat-0.json",
        "receipt-0.json",
    ]


def test_evaluate_and_compare(
    arguments: Arguments, tmp_path: Path, inputs_folder: Path, model_folder: Path
) -> None:
    recipe = tiny.common(
        "evaluate", cases=["test"], retention=["plain"], max_new_tokens=5, batch=3,
        end_tokens=[2], autocast=None,
    )  # fmt: skip
    assert run_alone(work.launch, arguments(recipe, "e")) == 0
    answers = read_lines(tmp_path / "e" / "answers-test.jsonl")
    cases = read_lines(inputs_folder / "test.cases.jsonl")
    losses = read_lines(tmp_path / "e" / "retention-plain.jsonl")
    body = read_json(tmp_path / "e" / "receipt-0.json")["body"]
    assert [answer["id"] for answer in answers] == [case["id"] for case in cases]
    assert body["roles"]["test"]["generated_tokens"] == sum(len(a["tokens"]) for a in answers)
    mean = sum(loss["loss"] for loss in losses) / len(losses)
    assert body["probes"]["plain"]["mean_loss"] == pytest.approx(mean)
    against = os.path.relpath(model_folder, inputs_folder)
    assert run_alone(work.launch, arguments(tiny.common("compare", against=against), "c")) == 0
    body = read_json(tmp_path / "c" / "receipt-0.json")["body"]
    assert (body["relative_l2"], body["max_abs"]) == (0, 0)
    assert body["root"] == body["against_root"]


def test_two_nodes_under_torchrun_agree(
    arguments: Arguments, popen: Popen, tmp_path: Path, free_port: int
) -> None:
    recipe = tiny.train_recipe(exchange=tiny.powersgd(dense_updates=1), preserve="full-state")
    nodes = [
        popen(arguments(recipe, f"out{rank}", nodes=2, node_rank=rank, port=free_port))
        for rank in range(2)
    ]
    said = [node.communicate(timeout=300) for node in nodes]
    assert [node.returncode for node in nodes] == [0, 0], said
    receipts = [read_json(tmp_path / f"out{rank}" / f"receipt-{rank}.json") for rank in range(2)]
    roots = {receipt["body"]["parameter_root"] for receipt in receipts}
    assert roots == {parameter_root(tmp_path / "out0" / "candidate" / "model.safetensors")}
    assert not (tmp_path / "out1" / "candidate").exists()
    for rank, receipt in enumerate(receipts):
        assert (receipt["rank"], receipt["workers"]) == (rank, 2)
        assert receipt["traffic"]["sent_bytes"] > receipt["body"]["exchange_sent_bytes"] > 0
        assert (tmp_path / f"out{rank}" / f"state-{rank}" / "state.safetensors").exists()


def test_check_sees_all_workers(
    arguments: Arguments, popen: Popen, tmp_path: Path, free_port: int
) -> None:
    recipe = tiny.common("check", seed="any")
    nodes = [
        popen(arguments(recipe, f"out{rank}", nodes=2, node_rank=rank, port=free_port))
        for rank in range(2)
    ]
    said = [node.communicate(timeout=300) for node in nodes]
    assert [node.returncode for node in nodes] == [0, 0], said
    for rank in range(2):
        body = read_json(tmp_path / f"out{rank}" / f"receipt-{rank}.json")["body"]
        assert (body["all_reduce_ok"], body["workers_seen"]) == (True, 2)
        assert body["weighted_update_max_error"] < 1e-12


def children(pid: int) -> list[int]:
    return [int(text) for text in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def gone(pid: int) -> bool:
    """Whether a process has ended (perhaps not yet collected by its parent), within a minute."""
    for _ in range(600):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state in "ZX":
            return True
        time.sleep(0.1)
    return False


def endless(rank: int, port: int, arguments: Arguments, folder: Path) -> list[str]:
    """Arguments of a training run that would last far longer than any test."""
    schedule = folder / "schedule.json"
    if not schedule.exists():
        tiny.write_inputs(folder, tiny.draw_documents(24), [[0, 1]] * 100_000)
    recipe = tiny.train_recipe(updates=100_000, exchange={"kind": "dense"})
    return arguments(recipe, f"out{rank}", nodes=2, node_rank=rank, port=port, inputs=folder)


def wait_for_updates(heartbeat: Path) -> None:
    end = time.monotonic() + 300
    while time.monotonic() < end:
        if heartbeat.exists() and json.loads(heartbeat.read_text())["phase"] == "train":
            return
        time.sleep(0.1)
    raise AssertionError("training did not begin")


@pytest.mark.parametrize("victim", ["worker", "launch"])
def test_a_killed_node_ends_the_other_at_once(
    victim: str,
    arguments: Arguments,
    popen: Popen,
    tmp_path: Path,
    free_port: int,
    record_property: Callable[[str, object], None],
) -> None:
    nodes = [popen(endless(rank, free_port, arguments, tmp_path / "in")) for rank in range(2)]
    try:
        wait_for_updates(tmp_path / "out0" / "heartbeat-0.json")
        workers = [children(node.pid)[0] for node in nodes]
        os.kill(workers[1] if victim == "worker" else nodes[1].pid, signal.SIGKILL)
        begun = time.monotonic()
        said = nodes[0].communicate(timeout=120)
        assert nodes[0].returncode not in (0, None), said
        record_property("said", f"a killed {victim}: {time.monotonic() - begun:.1f} s (aim 10)")
        assert nodes[1].wait(60) != 0
        assert all(gone(worker) for worker in workers)
    finally:
        for node in nodes:
            node.kill()
            node.communicate()


def test_sigterm_leaves_nothing_behind(
    arguments: Arguments, popen: Popen, tmp_path: Path, free_port: int
) -> None:
    nodes = [popen(endless(rank, free_port, arguments, tmp_path / "in")) for rank in range(2)]
    try:
        wait_for_updates(tmp_path / "out1" / "heartbeat-1.json")
        workers = [children(node.pid)[0] for node in nodes]
        for node in nodes:
            node.send_signal(signal.SIGTERM)
        assert all(node.wait(10) != 0 for node in nodes)
        assert all(gone(worker) for worker in workers)
        assert not (tmp_path / "out0" / "candidate").exists()
    finally:
        for node in nodes:
            node.kill()
            node.communicate()


def test_ranks_talk_by_what_the_recipe_says_else_by_what_suits_the_device() -> None:
    from torch import device

    from trainer.ranks import backend_of

    chosen = [backend_of(said, device(kind)) for said in (None, "gloo") for kind in ("cpu", "cuda")]
    assert chosen == ["gloo", "nccl", "gloo", "gloo"]
