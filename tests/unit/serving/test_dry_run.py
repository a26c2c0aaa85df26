"""What `serve` needs is found missing by a dry run, before anything was trained."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from trainer.contract import CONTRACT
from trainer.start import main

RECIPE: dict[str, Any] = {
    "contract": CONTRACT, "task": "serve", "device": "cpu", "threads": 1,
    "parameter_root": "0" * 64, "max_new_tokens": 8, "context": 64, "end_tokens": [2], "slots": 2,
    "queue": 0, "body_bytes": 1000, "cache": False, "autocast": None,
}  # fmt: skip


def dry_run(folder: Path, **changes: Any) -> int:
    recipe = folder / "recipe.json"
    recipe.write_text(json.dumps(RECIPE | changes))
    words = {
        "recipe": recipe, "out": folder / "out", "node-rank": 0, "nodes": 1,
        "address": "127.0.0.1", "port": 0, "interface": "lo",
    }  # fmt: skip
    argv = [str(word) for name, value in words.items() for word in (f"--{name}", value)]
    return main([*argv, "--dry-run"], folder / "launch")


def test_a_good_recipe_is_accepted(tmp_path: Path) -> None:
    assert dry_run(tmp_path) == 0


@pytest.mark.parametrize("package", ["uvicorn", "starlette"])
def test_a_missing_server_is_said(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    package: str,
) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == package else real(name)
    )
    assert dry_run(tmp_path) == 2
    assert f"needs the package {package}" in capsys.readouterr().err


@pytest.mark.parametrize(
    "changes", [{"slots": 0}, {"queue": -1}, {"cache": 1}, {"end_tokens": []}, {"context": 1},
                {"autocast": "fp8"}, {"parameter_root": ""}, {"port": 1}],
)  # fmt: skip
def test_a_wrong_recipe_is_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    assert dry_run(tmp_path, **changes) == 2
