"""Prepared inputs, tokenizer and pushed source against what prepared.json committed to."""

from __future__ import annotations

from pathlib import Path

from harness.errors import BadInput
from harness.inputs.identity import identity_of, list_files
from harness.prepared import Prepared
from trainer import contract


def check_inputs(folder: Path, prepared: Prepared) -> tuple[str, ...]:
    """A line for everything that is there. Raises BadInput for what differs."""
    found = []
    if (folder / "inputs").is_dir():
        _require("inputs", prepared.identity, identity_of(list_files(folder / "inputs")))
        found.append(f"inputs    {prepared.identity}  as committed")
    if (folder / "source").is_dir():
        _require("source", prepared.source_sha256, contract.tree_hash(folder / "source"))
        found.append(f"source    {prepared.source_sha256}  as committed")
    if (folder / "tokenizer.json").is_file():
        digest, _ = contract.hash_file(folder / "tokenizer.json")
        _require("tokenizer.json", prepared.tokenizer_sha256, digest)
    return tuple(found)


def _require(what: str, committed: str, found: str) -> None:
    if committed != found:
        raise BadInput(
            f"{what} has the hash {found}, and prepared.json committed to {committed}", where=what
        )
