"""A seed model's package that is installed already is read where it lies, if its hash is right."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest

from harness import seed_model
from harness.errors import BadInput, Waiting
from harness.plan.model import PackageModel

WEIGHTS = b"not really weights"


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on the path with the package in version 1.5."""
    site = tmp_path / "site"
    (site / "toy_weights").mkdir(parents=True)
    (site / "toy_weights" / "toy.gguf").write_bytes(WEIGHTS)
    info = site / "toy_weights-1.5.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-weights\nVersion: 1.5\n")
    monkeypatch.syspath_prepend(str(site))
    assert str(site) in sys.path
    yield site


def model(version: str, data: bytes = WEIGHTS) -> PackageModel:
    return PackageModel(
        kind="package", package="toy-weights", version=version, file="toy_weights/toy.gguf",
        sha256=hashlib.sha256(data).hexdigest(),
    )  # fmt: skip


def take(folder: Path, wanted: PackageModel) -> Path:
    inputs = folder / "work" / "inputs"
    inputs.mkdir(parents=True)
    return inputs / seed_model._from_package(mock.Mock(), wanted, inputs)


def test_it_is_copied_from_where_it_is_installed(site: Path, tmp_path: Path) -> None:
    assert take(tmp_path, model("1.5")).read_bytes() == WEIGHTS
    assert (site / "toy_weights" / "toy.gguf").exists()


def test_another_version_is_fetched_instead(site: Path, tmp_path: Path) -> None:
    with (
        mock.patch.object(seed_model, "_fetch_package", side_effect=Waiting("no network here")),
        pytest.raises(Waiting, match="no network here"),
    ):
        take(tmp_path, model("1.6"))


def test_its_hash_decides(site: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="not the plan's"):
        take(tmp_path, model("1.5", b"other weights"))
