"""A cloud, a provider and an engine for every test that asks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.engine import Engine
from tests.engine.moto.server import MotoCloud
from tests.engine.provider.server import Provider


@pytest.fixture(scope="session")
def served_cloud() -> Iterator[MotoCloud]:
    with MotoCloud() as cloud:
        yield cloud


@pytest.fixture(scope="session")
def provider(served_cloud: MotoCloud) -> Iterator[Provider]:
    with Provider(served_cloud.endpoint) as provider:
        yield provider


@pytest.fixture
def cloud(served_cloud: MotoCloud) -> MotoCloud:
    """An empty cloud."""
    served_cloud.reset()
    return served_cloud


@pytest.fixture
def engine(tmp_path: Path, cloud: MotoCloud, provider: Provider) -> Engine:
    """An empty stack."""
    return Engine(tmp_path / "project", {**cloud.environment, **provider.environment})
