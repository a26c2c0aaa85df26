"""Schedules, golden losses, whole checkpoints, and going on exactly where one stopped."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

from tests.numerics import tiny, work
from tests.numerics.ranks_pool import run_alone, run_ranks
from trainer import checkpoint, roots
from trainer.batches import Document
from trainer.contract import parameter_root
from trainer.heartbeat import Heartbeat
from trainer.recipe import Schedule
from trainer.schedule import lr_share

GOLDEN = Path(__file__).with_name("golden_losses.json")


def test_schedules() -> None:
    assert [lr_share(Schedule("constant", 0, 0.0), u, 3) for u in (1, 2, 3)] == [1, 1, 1]
    warm = Schedule("linear", 2, 0.1)
    assert [lr_share(warm, u, 5) for u in range(1, 6)] == pytest.approx([0.5, 1, 0.7, 0.4, 0.1])
    cosine = [lr_share(Schedule("cosine", 0, 0.0), u, 4) for u in range(1, 5)]
    assert cosine == pytest.approx([0.5 + 0.5 * math.cos(math.pi * u / 4) for u in range(1, 5)])
    assert lr_share(Schedule("cosine", 8, 0.5), 4, 6) == 0.5  # all of it is warm-up


def golden_updates() -> list[list[Document]]:
    documents = tiny.draw_documents(80, seed=12)
    return [documents[start : start + 8] for start in range(0, 80, 8)]


def golden_run(folder: Path, exchange: dict[str, object], workers: int) -> list[float]:
    recipe = tiny.train(updates=10, exchange=exchange)
    ranks = run_ranks(work.train, workers, folder, recipe, golden_updates())
    return [record.loss for record in ranks[0]["records"]]


@pytest.mark.parametrize("name", ["one worker", "two workers, powersgd"])
def test_losses_follow_the_golden_trajectory(name: str, model_folder: Path) -> None:
    """Regenerate with `python -m tests.numerics.test_state`, and say why in the commit."""
    golden = json.loads(GOLDEN.read_text())
    found = golden_run(model_folder, *golden["runs"][name]["setting"])
    assert found == pytest.approx(golden["runs"][name]["losses"], rel=golden["tolerance"])


def test_killed_while_writing_leaves_no_candidate(model_folder: Path, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="a rank died"):
        run_alone(work.checkpoint_until_killed, tmp_path, model_folder)
    assert [path.name for path in tmp_path.iterdir()] == [".candidate.partial"]
    weights = {"a": torch.ones(3)}
    checkpoint.write_candidate(tmp_path, model_folder, weights, lambda: None)
    assert [path.name for path in tmp_path.iterdir()] == ["candidate"]
    np.testing.assert_array_equal(
        load_file(tmp_path / "candidate" / "model.safetensors")["a"], np.ones(3, np.float32)
    )


def test_the_root_in_memory_is_the_root_on_disk(tmp_path: Path) -> None:
    generator = torch.Generator().manual_seed(1)
    tensors = {
        "b.wide": torch.randn(3, 70, generator=generator).T,  # not contiguous
        "a": torch.randn(5, generator=generator),
        "é": torch.randn(2, 2, generator=generator, dtype=torch.float64),
        "empty": torch.zeros(0, 4),
    }
    checkpoint.write_tensors(tmp_path / "t.safetensors", tensors)
    assert roots.parameter_root(tensors) == parameter_root(tmp_path / "t.safetensors")
    read = load_file(tmp_path / "t.safetensors")
    for name, tensor in tensors.items():
        np.testing.assert_array_equal(read[name], tensor.numpy())
    changed = {**tensors, "a": tensors["a"] + 1e-7}
    assert roots.parameter_root(changed) != roots.parameter_root(tensors)


def test_the_heartbeat_beats_only_on_progress(tmp_path: Path) -> None:
    now = [0.0]
    heart = Heartbeat(tmp_path / "heartbeat-0.json", interval_s=5, clock=lambda: now[0])
    heart.beat("train", 1, 4, 2.5, 10.0)
    first = json.loads(heart.path.read_text())
    assert {key: first[key] for key in first if key != "time"} == {
        "phase": "train", "done": 1, "of": 4, "loss": 2.5, "tokens_per_s": 10.0,
    }  # fmt: skip
    now[0] = 4.9
    heart.tick()
    assert json.loads(heart.path.read_text()) == first
    now[0] = 5.0
    heart.tick()
    second = json.loads(heart.path.read_text())
    assert second["time"] > first["time"] and second["done"] == 1


def regenerate() -> None:
    """Write the golden file anew."""
    import tempfile

    settings: dict[str, list[object]] = {
        "one worker": [{"kind": "none"}, 1],
        "two workers, powersgd": [tiny.powersgd(dense_updates=2), 2],
    }
    with tempfile.TemporaryDirectory() as folder:
        tiny.write_model(Path(folder))
        runs = {
            name: {"setting": setting, "losses": golden_run(Path(folder), *setting)}  # type: ignore[arg-type]
            for name, setting in settings.items()
        }
    value = {
        "about": "Losses in nats of a fixed small run on CPU, update by update, FP32.",
        "tolerance": 2e-5,
        "runs": runs,
    }
    GOLDEN.write_text(json.dumps(value, indent=1) + "\n")


if __name__ == "__main__":
    regenerate()
