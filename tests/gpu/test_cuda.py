"""The same trainer on GPUs, one and two of them over NCCL (`make test-gpu`, on a GPU machine)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.numerics import tiny, work
from tests.numerics.test_state import GOLDEN, golden_updates
from trainer.contract import parameter_root, read_json, read_lines


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The golden run's model and inputs."""
    tiny.write_model(tmp_path / "model")
    documents = [document for update in golden_updates() for document in update]
    schedule = [list(range(start, start + 8)) for start in range(0, 80, 8)]
    tiny.write_inputs(tmp_path / "in", documents, schedule)
    return tmp_path


def node(
    folder: Path, recipe: dict[str, Any], out: str, rank: int = 0, nodes: int = 1,
    port: int = 29500, gpu: int | None = None,
) -> subprocess.Popen[str]:  # fmt: skip
    """`launch` on one GPU of its own (or on `gpu`), as if each were a host."""
    path = folder / f"{out}.json"
    path.write_text(json.dumps(recipe | {"device": "cuda"}))
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "CUDA_VISIBLE_DEVICES": str(rank if gpu is None else gpu),
    }
    argv = [work.ROOT / "trainer" / "launch", "--recipe", path, "--inputs", folder / "in"]
    argv += ["--model", folder / "model", "--out", folder / out, "--node-rank", rank]
    argv += ["--nodes", nodes, "--address", "127.0.0.1", "--port", port, "--interface", "lo"]
    return subprocess.Popen(
        [str(value) for value in argv],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def done(*processes: subprocess.Popen[str]) -> None:
    said = [process.communicate(timeout=180) for process in processes]
    assert [process.returncode for process in processes] == [0] * len(processes), said


def losses(folder: Path, out: str, rank: int = 0) -> list[float]:
    return [line["loss"] for line in read_lines(folder / out / f"losses-{rank}.jsonl")]


def test_a_gpu_follows_the_golden_trajectory_and_repeats_itself(folder: Path) -> None:
    recipe = tiny.train_recipe(updates=10)
    for out in ("a", "b"):
        done(node(folder, recipe, out))
    golden = json.loads(GOLDEN.read_text())["runs"]["one worker"]["losses"]
    assert losses(folder, "a") == pytest.approx(golden, rel=1e-3)
    receipt = read_json(folder / "a" / "receipt-0.json")
    assert (receipt["device"], receipt["peak_memory_of"]) == ("cuda", "device")
    again = read_json(folder / "b" / "receipt-0.json")
    assert receipt["body"]["parameter_root"] == again["body"]["parameter_root"]


def test_a_gpu_answers_like_a_cpu(folder: Path) -> None:
    recipe = tiny.common(
        "evaluate", cases=["test"], retention=["plain"], max_new_tokens=8, batch=3,
        end_tokens=[2], autocast=None,
    )  # fmt: skip
    done(node(folder, recipe, "e"))
    cpu = folder / "cpu.json"
    cpu.write_text(json.dumps(recipe))
    argv = ["--recipe", cpu, "--inputs", folder / "in", "--model", folder / "model"]
    argv += ["--out", folder / "c", "--node-rank", 0, "--nodes", 1, "--address", "127.0.0.1"]
    subprocess.run(
        [sys.executable, work.ROOT / "trainer" / "launch", *map(str, argv), "--port", "0",
         "--interface", "lo"], check=True,
    )  # fmt: skip
    answers = [read_lines(folder / out / "answers-test.jsonl") for out in ("e", "c")]
    assert answers[0] == answers[1]
    gpu, host = (read_lines(folder / out / "retention-plain.jsonl") for out in ("e", "c"))
    assert [row["loss"] for row in gpu] == pytest.approx([row["loss"] for row in host], rel=1e-4)


def test_running_out_of_memory_is_what_a_probe_finds(folder: Path) -> None:
    documents = tiny.draw_documents(40_000, longest=400)
    tiny.write_inputs(folder / "in", documents, [list(range(40_000))] * 2)
    recipe = tiny.train_recipe(task="probe", trial_updates=2, updates=2, microbatch=40_000)
    done(node(folder, recipe, "p"))
    body = read_json(folder / "p" / "receipt-0.json")["body"]
    assert body["out_of_memory"] is True
    assert body["updates"] == 0


@pytest.mark.parametrize("exchange", [{"kind": "dense"}, tiny.powersgd(dense_updates=2)])
def test_two_gpus_agree(folder: Path, free_port: int, exchange: dict[str, Any]) -> None:
    recipe = tiny.train_recipe(updates=10, exchange=exchange)
    done(*(node(folder, recipe, f"r{rank}", rank, 2, free_port) for rank in range(2)))
    receipts = [read_json(folder / f"r{rank}" / f"receipt-{rank}.json") for rank in range(2)]
    root = parameter_root(folder / "r0" / "candidate" / "model.safetensors")
    assert [receipt["body"]["parameter_root"] for receipt in receipts] == [root, root]
    golden = json.loads(GOLDEN.read_text())["runs"]
    name = "one worker" if exchange["kind"] == "dense" else "two workers, powersgd"
    assert losses(folder, "r1", 1) == pytest.approx(golden[name]["losses"], rel=2e-3)


def test_two_gpus_hear_each_other(folder: Path, free_port: int) -> None:
    recipe = tiny.common("check", seed="any")
    done(*(node(folder, recipe, f"k{rank}", rank, 2, free_port) for rank in range(2)))
    body = read_json(folder / "k1" / "receipt-1.json")["body"]
    assert (body["all_reduce_ok"], body["workers_seen"]) == (True, 2)
    assert body["weighted_update_max_error"] < 1e-12


def test_a_killed_gpu_worker_ends_the_other(folder: Path, free_port: int) -> None:
    schedule = [list(range(8))] * 100_000
    tiny.write_inputs(folder / "in", tiny.draw_documents(24), schedule)
    recipe = tiny.train_recipe(updates=100_000, exchange={"kind": "dense"})
    nodes = [node(folder, recipe, f"d{rank}", rank, 2, free_port) for rank in range(2)]
    try:
        heartbeat = folder / "d0" / "heartbeat-0.json"
        end = time.monotonic() + 120
        while not heartbeat.exists() or read_json(heartbeat)["phase"] != "train":
            assert time.monotonic() < end and nodes[0].poll() is None
            time.sleep(0.2)
        pid = nodes[1].pid
        worker = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0]
        os.kill(int(worker), signal.SIGKILL)
        assert nodes[1].wait(15) != 0
        assert nodes[0].wait(60) != 0
    finally:
        for process in nodes:
            process.kill()
            process.communicate()


def test_two_ranks_share_a_gpu_by_gloo(folder: Path, free_port: int) -> None:
    """The second rank is shown the first GPU too."""
    recipe = tiny.train_recipe(updates=10, exchange=tiny.powersgd(dense_updates=2))
    recipe["transport"] = "gloo"
    done(*(node(folder, recipe, f"g{rank}", rank, 2, free_port, gpu=0) for rank in range(2)))
    root = parameter_root(folder / "g0" / "candidate" / "model.safetensors")
    receipts = [read_json(folder / f"g{rank}" / f"receipt-{rank}.json") for rank in range(2)]
    assert [receipt["body"]["parameter_root"] for receipt in receipts] == [root, root]
    golden = json.loads(GOLDEN.read_text())["runs"]["two workers, powersgd"]["losses"]
    assert losses(folder, "g1", 1) == pytest.approx(golden, rel=2e-3)


def test_a_benchmark_counts_peaks_first_thing_in_a_process() -> None:
    """Before anything of the process has touched the device, as `bench.study135` does it."""
    words = (
        "import torch; from bench import measure; "
        "device = torch.device('cuda', 0); measure.forget_memory(device); "
        "assert torch.cuda.max_memory_allocated(device) == 0"
    )
    subprocess.run([sys.executable, "-c", words], check=True, cwd=work.ROOT, timeout=300)
