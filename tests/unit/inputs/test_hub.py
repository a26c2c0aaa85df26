"""Fetching from a hub: pinned commits, checked bytes, clear sentences."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.errors import BadInput, Waiting
from harness.inputs.hub import HubFile, fetch, hub_file_hashes, read_rows, read_text_rows
from harness.plan.data import HubText
from tests.unit.inputs.hub_server import COMMIT, OTHER, Hub, blob_id, serving

CONFIG = b'{"hidden_size": 4}\n'
WEIGHTS = bytes(range(256)) * 64
ROWS = b'{"text": "one"}\n{"text": "two"}\n'


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    monkeypatch.setenv("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    files = {
        ("org/model", "config.json"): CONFIG,
        ("org/model", "model.safetensors"): WEIGHTS,
        ("datasets/org/talk", "data/train.jsonl"): ROWS,
    }
    with serving(Hub(files=files, large={"model.safetensors"})) as served:
        yield served


def get(hub: Hub, file: str, tmp_path: Path, *, revision: str = COMMIT, repo: str = "") -> Path:
    return fetch(repo or "org/model", revision, file, endpoint=hub.address, cache=tmp_path)


@pytest.mark.parametrize(
    ("file", "data"), [("config.json", CONFIG), ("model.safetensors", WEIGHTS)]
)
def test_a_file_of_the_pinned_commit_is_fetched(
    hub: Hub, tmp_path: Path, file: str, data: bytes
) -> None:
    assert get(hub, file, tmp_path).read_bytes() == data


def test_a_file_of_a_data_set_in_a_folder_is_fetched(hub: Hub, tmp_path: Path) -> None:
    path = fetch(
        "org/talk", COMMIT, "data/train.jsonl", kind="dataset", endpoint=hub.address, cache=tmp_path
    )
    assert path.read_bytes() == ROWS


def test_a_cached_file_needs_no_network(hub: Hub, tmp_path: Path) -> None:
    get(hub, "config.json", tmp_path)
    hub.requests.clear()
    assert get(hub, "config.json", tmp_path).read_bytes() == CONFIG
    assert not hub.requests


def test_a_cached_file_is_checked_again(hub: Hub, tmp_path: Path) -> None:
    path = get(hub, "config.json", tmp_path)
    path.resolve().write_bytes(CONFIG.replace(b"4", b"5"))
    with pytest.raises(BadInput, match=f"hash .* the hub says {blob_id(CONFIG)}; remove"):
        get(hub, "config.json", tmp_path)


def test_another_commit_than_the_pinned_one_is_refused(hub: Hub, tmp_path: Path) -> None:
    hub.commit = OTHER
    with pytest.raises(BadInput, match=f"served the commit {OTHER} instead") as caught:
        get(hub, "config.json", tmp_path)
    assert caught.value.where == f"org/model@{COMMIT[:12]}/config.json"


@pytest.mark.parametrize("file", ["config.json", "model.safetensors"])
def test_bytes_that_do_not_have_their_hash_are_refused(hub: Hub, tmp_path: Path, file: str) -> None:
    hub.flip = True
    with pytest.raises(BadInput, match="the bytes have the hash"):
        get(hub, file, tmp_path)


def test_a_missing_file_and_a_missing_repository_are_named(hub: Hub, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no such file") as caught:
        get(hub, "nothing.json", tmp_path)
    assert "nothing.json" in caught.value.sentence()
    with pytest.raises(BadInput, match="no such repository"):
        get(hub, "config.json", tmp_path, repo="org/unknown")
    with pytest.raises(BadInput, match="not the name of a repository"):
        get(hub, "config.json", tmp_path, repo="a/b/c")


def test_a_failure_that_passes_is_lived_through(hub: Hub, tmp_path: Path) -> None:
    hub.failures = 1
    assert get(hub, "config.json", tmp_path).read_bytes() == CONFIG


def test_a_hub_that_cannot_be_reached_can_be_tried_again(tmp_path: Path) -> None:
    with serving(Hub()) as gone:
        address = gone.address
    with pytest.raises(Waiting, match="the hub cannot be"):
        hub_file_hashes("org/model", COMMIT, endpoint=address)


def test_hashes_of_all_files_come_from_the_hub(hub: Hub) -> None:
    found = hub_file_hashes("org/model", COMMIT, endpoint=hub.address)
    assert found["config.json"] == HubFile("git-blob", blob_id(CONFIG), len(CONFIG))
    assert found["model.safetensors"].algorithm == "sha256"
    assert found["model.safetensors"].digest == hub.etag("model.safetensors", WEIGHTS)
    assert found["model.safetensors"].size == len(WEIGHTS)
    assert list(found) == ["config.json", "model.safetensors"]


def test_hashes_of_another_commit_are_refused(hub: Hub) -> None:
    hub.commit = OTHER
    with pytest.raises(BadInput, match="served the commit"):
        hub_file_hashes("org/model", COMMIT, endpoint=hub.address)
    with pytest.raises(BadInput, match="no such revision"):
        hub_file_hashes("org/model", "c" * 40, endpoint=hub.address)


def text_source(**changes: object) -> HubText:
    value = {"kind": "hub-dataset", "repo": "org/talk", "revision": COMMIT, "column": "text"}
    return HubText.model_validate(value | {"file": "data/train.jsonl"} | changes)


def test_a_data_sets_rows_are_read(hub: Hub, tmp_path: Path) -> None:
    rows = read_text_rows(text_source(), endpoint=hub.address, cache=tmp_path)
    assert rows == ["one", "two"]


def test_a_data_set_without_a_pinned_revision_is_refused() -> None:
    with pytest.raises(BadInput, match="no pinned revision"):
        read_text_rows(text_source(revision=None), endpoint=None)


def test_a_missing_column_and_a_bad_row_are_named(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(ROWS)
    with pytest.raises(BadInput, match="no column 'messages'"):
        read_rows(path, "messages", where="rows")
    path.write_bytes(b'{"text": NaN}\n')
    with pytest.raises(BadInput, match="NaN"):
        read_rows(path, "text", where="rows")
    with pytest.raises(BadInput, match=r"ends in .jsonl or .parquet"):
        read_rows(tmp_path / "rows.csv", "text", where="rows")


def test_parquet_without_pyarrow_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(BadInput, match="needs pyarrow"):
        read_rows(tmp_path / "rows.parquet", "text", where="rows")


def test_parquet_rows_are_read(tmp_path: Path) -> None:
    pyarrow = importlib.import_module("pyarrow")
    parquet = importlib.import_module("pyarrow.parquet")
    turns = [[{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}]]
    path = tmp_path / "rows.parquet"
    parquet.write_table(pyarrow.table({"messages": turns, "more": [1]}), path)
    assert read_rows(path, "messages", where="rows") == turns
    with pytest.raises(BadInput, match="no column 'text'"):
        read_rows(path, "text", where="rows")


def test_without_the_hub_library_one_sentence_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(BadInput, match="needs huggingface_hub"):
        fetch("org/model", COMMIT, "config.json")
