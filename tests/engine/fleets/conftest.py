"""A project folder with a plan for AWS, in an empty cloud."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engine.fleets.workshop import Workshop
from tests.engine.moto.server import MotoCloud
from tests.engine.provider.server import Provider


@pytest.fixture
def workshop(tmp_path: Path, cloud: MotoCloud, provider: Provider) -> Workshop:
    made = Workshop(tmp_path, cloud, provider)
    made.write()
    return made
