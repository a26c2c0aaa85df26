"""A project folder with a plan for AWS, in an empty cloud, and one whose hosts really boot."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.boots.power import Power
from tests.engine.fleets.workshop import Workshop
from tests.engine.moto.server import MotoCloud
from tests.engine.provider.server import Provider


@pytest.fixture
def workshop(tmp_path: Path, cloud: MotoCloud, provider: Provider) -> Workshop:
    made = Workshop(tmp_path, cloud, provider)
    made.write()
    return made


@pytest.fixture
def power(tmp_path: Path, cloud: MotoCloud) -> Iterator[Power]:
    """Every instance that is launched boots, on an address of this computer."""
    with Power(cloud, tmp_path / "machines") as playing:
        yield playing
