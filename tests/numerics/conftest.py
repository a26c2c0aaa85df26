"""Folders that several tests read and none writes to."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.numerics import tiny

ROOT = Path(__file__).resolve().parents[2]
LAUNCH = ROOT / "trainer" / "launch"


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.write_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="session")
def inputs_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    schedule = [[(7 * update + place) % 24 for place in range(8)] for update in range(4)]
    return tiny.write_inputs(tmp_path_factory.mktemp("inputs"), tiny.draw_documents(24), schedule)


@pytest.fixture
def arguments(tmp_path: Path, model_folder: Path, inputs_folder: Path) -> Callable[..., list[str]]:
    """Makes the arguments of `launch`: recipe, and anything to change."""

    def make(recipe: dict[str, Any], out: str = "out", **changes: Any) -> list[str]:
        path = tmp_path / f"{out}.recipe.json"
        path.write_text(json.dumps(recipe))
        values = {
            "recipe": path,
            "inputs": inputs_folder,
            "model": model_folder,
            "out": tmp_path / out,
            "node_rank": 0,
            "nodes": 1,
            "address": "127.0.0.1",
            "port": 29500,
            "interface": "lo",
        } | changes
        return [
            text
            for name, value in values.items()
            for text in (f"--{name.replace('_', '-')}", str(value))
        ]

    return make


@pytest.fixture
def popen() -> Callable[..., subprocess.Popen[str]]:
    """Starts the real `launch`, as a host does: by name, with python3 from PATH."""

    def start(argv: list[str], **options: Any) -> subprocess.Popen[str]:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        return subprocess.Popen(
            [str(LAUNCH), *argv],
            env={**os.environ, "PATH": path},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **options,
        )

    return start


@pytest.fixture
def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
