"""One cloud for the folder, emptied before every test; boto3 of this process meets it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.engine.moto.server import MotoCloud


@pytest.fixture(scope="session")
def running_cloud() -> Iterator[MotoCloud]:
    with MotoCloud() as cloud:
        yield cloud


@pytest.fixture
def cloud(running_cloud: MotoCloud, monkeypatch: pytest.MonkeyPatch) -> MotoCloud:
    running_cloud.reset()
    for name, value in running_cloud.environment.items():
        monkeypatch.setenv(name, value)
    return running_cloud
