"""The cloud of the room above, met by boto3 of this process too."""

from __future__ import annotations

import pytest

from tests.engine.moto.server import MotoCloud


@pytest.fixture
def cloud(served_cloud: MotoCloud, monkeypatch: pytest.MonkeyPatch) -> MotoCloud:
    """Empty; the environment's AWS is this one."""
    served_cloud.reset()
    for name, value in served_cloud.environment.items():
        monkeypatch.setenv(name, value)
    return served_cloud
