"""A cloud, a provider and an engine for every test that asks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.engine import Engine
from tests.engine.moto.server import MotoCloud
from tests.engine.provider.server import Provider
from tests.engine.seen import Seen
from tests.engine.told import Told, admitted


@pytest.fixture(scope="session")
def served_cloud() -> Iterator[MotoCloud]:
    with MotoCloud() as cloud:
        yield cloud


@pytest.fixture(scope="session")
def provider(served_cloud: MotoCloud) -> Iterator[Provider]:
    with Provider(served_cloud.endpoint) as provider:
        yield provider


@pytest.fixture(scope="module")
def standing(
    served_cloud: MotoCloud, provider: Provider, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Engine, Told, Seen]]:
    """A fleet that stands, gate armed, for tests that leave it as it is. Module-wide: first."""
    served_cloud.reset()
    environment = {**served_cloud.environment, **provider.environment}
    engine = Engine(tmp_path_factory.mktemp("standing") / "project", environment)
    told = Told(admitted(), served_cloud.client("ec2"))
    engine.up(told.program).ok()
    yield engine, told, Seen(served_cloud)


@pytest.fixture
def cloud(served_cloud: MotoCloud) -> MotoCloud:
    """An empty cloud."""
    served_cloud.reset()
    return served_cloud


@pytest.fixture
def engine(tmp_path: Path, cloud: MotoCloud, provider: Provider) -> Engine:
    """An empty stack."""
    return Engine(tmp_path / "project", {**cloud.environment, **provider.environment})


def pytest_configure(config: pytest.Config) -> None:
    """The provider looks every type up, deprecated ones come along."""
    config.addinivalue_line("filterwarnings", "ignore::DeprecationWarning:pulumi_aws.*")
