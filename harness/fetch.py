"""Candidates and evidence of a run, fetched from its store: also after its hosts are gone."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

from harness.errors import BadInput, Leaked
from harness.journal import read_entries
from harness.receipts import RECEIPTS, Receipt, SealReceipt, TrainReceipt
from harness.store.choose import RECORD, StoreRecord, open_store
from harness.store.protocol import Artifact, Store
from harness.strict import build, load_file
from trainer import contract

R = TypeVar("R", bound=Receipt)
What = Literal["candidates", "evidence", "all"]


@dataclass(frozen=True)
class Fetched:
    """One file that is now here. `moved` is false when it was here already, byte for byte."""

    path: Path
    bytes: int
    moved: bool


def fetch(run: Path, into: Path, what: What, *, arm: str = "") -> tuple[Fetched, ...]:
    """Every asked-for file below `into`, hash checked; candidates also by their parameter root.

    Raises BadInput when the run has stored nothing of it, Leaked when an object is not whole,
    Waiting when the store cannot be read now.
    """
    store = _store(run)
    found: list[Fetched] = []
    if what != "evidence":
        trained = _receipt(run, "train", TrainReceipt)
        if trained is None and what == "candidates":
            raise BadInput(
                "no candidate is stored yet", where=str(run), next_command="harness status"
            )
        found += _candidates(store, trained, into, arm) if trained else []
    if what != "candidates":
        sealed = _receipt(run, "seal", SealReceipt)
        if sealed is None and what == "evidence":
            raise BadInput(
                "the evidence is not sealed yet", where=str(run), next_command="harness status"
            )
        if sealed is not None:
            found.append(_one(store, sealed.envelope, into / sealed.envelope.name))
    return tuple(found)


def _candidates(store: Store, trained: TrainReceipt, into: Path, arm: str) -> list[Fetched]:
    names = [each.arm for each in trained.arms]
    if arm and arm not in names:
        raise BadInput(f"no arm '{arm}' was trained; there are {', '.join(names)}", where="--arm")
    found = []
    for record in trained.arms:
        if arm in ("", record.arm):
            folder = into / "candidates" / record.arm
            found += [_one(store, each, folder / each.name) for each in record.candidate.files]
            _check_root(folder, record.candidate.parameter_root)
    return found


def _check_root(folder: Path, root: str) -> None:
    weights = folder / "model.safetensors"
    if weights.is_file() and contract.parameter_root(weights) != root:
        raise Leaked(f"the candidate's parameters are not those that were selected ({root})",
                     where=str(weights))  # fmt: skip


def _one(store: Store, artifact: Artifact, path: Path) -> Fetched:
    same = path.is_file() and contract.hash_file(path) == (artifact.sha256, artifact.bytes)
    if not same:
        store.fetch(artifact, path)
    return Fetched(path, artifact.bytes, moved=not same)


def _store(run: Path) -> Store:
    record = run / RECORD
    if not record.is_file():
        raise BadInput(
            "nothing of this run is in a store yet", where=str(run), next_command="harness status"
        )
    return open_store(load_file(StoreRecord, record), near=run.resolve().parents[1] / "store")


def _receipt(run: Path, stage: Literal["train", "seal"], kind: type[R]) -> R | None:
    entries, _ = read_entries(run / "journal.jsonl")
    for entry in entries:
        if entry.kind == "receipt" and entry.key == stage:
            receipt = build(RECEIPTS[stage], entry.data, where=f"{run}/journal.jsonl#{entry.seq}")
            assert isinstance(receipt, kind)
            return receipt
    return None
