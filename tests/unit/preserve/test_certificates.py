"""What the operator checks of a readback that another machine says it made, and its own sample."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness import preservation
from harness.errors import Leaked
from harness.hosts.local import LocalHost
from harness.preservation import SAMPLE_BYTES, SAMPLE_OBJECTS, Certificate
from harness.store.folder import FolderStore
from harness.store.protocol import Artifact
from trainer import contract


@pytest.fixture
def store(tmp_path: Path) -> FolderStore:
    return FolderStore(tmp_path / "store")


@pytest.fixture
def rows(store: FolderStore) -> tuple[Artifact, ...]:
    return tuple(store.put_bytes(name.encode() * 1000, name=name) for name in "abc")


@pytest.fixture
def host(tmp_path: Path) -> LocalHost:
    (tmp_path / "host").mkdir()
    return LocalHost(name="host-1", work=str(tmp_path / "host"), fleet_id="test")


def test_a_host_reads_back_and_its_certificate_holds(
    store: FolderStore, rows: tuple[Artifact, ...], host: LocalHost, tmp_path: Path
) -> None:
    found = preservation.read_on(host, store, rows, tmp_path / "listing.json")
    preservation.check_certificate(found, rows, store, reader=host.name)
    assert all(each.ok for each in found.objects)
    here = preservation.read_here(store, rows[:1], tmp_path / "sample.json")
    preservation.check_certificate(here, rows[:1], store, reader="here")
    assert here.pid != found.pid


def test_a_broken_object_is_in_the_certificate(
    store: FolderStore, rows: tuple[Artifact, ...], host: LocalHost, tmp_path: Path
) -> None:
    path = Path(store.locate(rows[1].sha256))
    path.chmod(0o644)
    path.write_bytes(b"B" * 1000)
    found = preservation.read_on(host, store, rows, tmp_path / "listing.json")
    preservation.check_certificate(found, rows, store, reader=host.name)
    assert [each.fault for each in found.objects] == [None, "corrupt", None]


LIES: dict[str, tuple[dict[str, Any], str]] = {
    "store": ({"store": {"kind": "folder", "path": "/elsewhere"}}, "is of another store"),
    "listing": ({"listing_sha256": "0" * 64}, "is of another listing"),
    "fewer": ({"objects": ()}, "has 0 objects, not 3"),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_certificate_of_something_else_certifies_nothing(
    store: FolderStore, rows: tuple[Artifact, ...], tmp_path: Path, lie: str
) -> None:
    found = preservation.read_here(store, rows, tmp_path / "listing.json")
    change, words = LIES[lie]
    with pytest.raises(Leaked, match=words):
        preservation.check_certificate(
            found.model_copy(update=change), rows, store, reader="host-1"
        )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"name": "z"}, "names z where a was asked for"),
        ({"sha256": "0" * 64}, "names a where a was asked for"),
        ({"bytes": 5}, "contradicts itself about a"),
        ({"fault": "corrupt"}, "contradicts itself about a"),
    ],
)
def test_every_row_must_be_what_was_asked_for(
    store: FolderStore, rows: tuple[Artifact, ...], tmp_path: Path, change: Any, words: str
) -> None:
    found = preservation.read_here(store, rows, tmp_path / "listing.json")
    first, *rest = found.objects
    told = found.model_copy(update={"objects": (first.model_copy(update=change), *rest)})
    with pytest.raises(Leaked, match=words):
        preservation.check_certificate(told, rows, store, reader="host-1")


def test_another_version_is_not_the_one_that_was_stored(
    store: FolderStore, rows: tuple[Artifact, ...], tmp_path: Path
) -> None:
    pinned = (rows[0].model_copy(update={"version": "one"}),)
    found = preservation.read_here(store, rows[:1], tmp_path / "listing.json")
    listing = contract.hash_of([each.to_json() for each in pinned])
    told: Certificate = found.model_copy(update={"listing_sha256": listing})
    with pytest.raises(Leaked, match="another version of a"):
        preservation.check_certificate(told, pinned, store, reader="host-1")


def test_the_sample_is_declared_by_a_rule_and_bounded() -> None:
    rows = [Artifact(name=str(n), sha256=f"{n:064x}", bytes=10) for n in range(200)]
    archive = rows[7]
    drawn = preservation.sample_of(rows, archive, "plan-a")
    assert drawn[0] == archive and len(drawn) == SAMPLE_OBJECTS
    assert len({each.sha256 for each in drawn}) == len(drawn)
    assert drawn == preservation.sample_of(list(reversed(rows)), archive, "plan-a")
    assert drawn != preservation.sample_of(rows, archive, "plan-b")
    large = [each.model_copy(update={"bytes": SAMPLE_BYTES // 4}) for each in rows]
    drawn = preservation.sample_of(large, large[7], "plan-a")
    assert sum(each.bytes for each in drawn) <= SAMPLE_BYTES and len(drawn) == 4
