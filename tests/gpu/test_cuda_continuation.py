"""On GPUs too a killed arm ends bit for bit like an unbroken one (`make test-gpu`)."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.numerics import tiny
from tests.numerics.killing import Kill
from tests.numerics.test_continuation import Arm


@pytest.mark.parametrize("name", ["none", "dense", "powersgd", "local", "windows"])
@pytest.mark.parametrize("where", ["update", "writing"])
def test_killed_on_a_gpu_it_ends_the_same(name: str, where: str, tmp_path: Path) -> None:
    model = tiny.write_model(tmp_path / "model")
    arms = []
    for folder in ("whole", "broken"):
        (tmp_path / folder).mkdir()
        arms.append(Arm(tmp_path / folder, model, name, device="cuda"))
    whole, broken = arms
    assert torch.cuda.device_count() >= whole.workers
    assert whole.attempt("one") == [0] * whole.workers
    assert broken.attempt("one", kill=Kill(0, where, 6)) == []
    assert broken.attempt("two", "one") == [0] * broken.workers
    assert broken.resumed_from("two") in (2, 4, 6)
    assert broken.result("two") == whole.result("one")
