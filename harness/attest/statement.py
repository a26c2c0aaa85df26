"""The statement that is signed and time-stamped: pure, the same bytes from run and evidence."""

from __future__ import annotations

from collections.abc import Mapping

from trainer import contract

TYPE = "https://in-toto.io/Statement/v1"
PREDICATE = "urn:harness:commitment:1"
FOLDER = "statements"


def statement(
    *, what: str, run: str, plan_hash: str, commit: str, files: Mapping[str, str]
) -> bytes:
    """Canonical JSON of an in-toto Statement v1 (github.com/in-toto/attestation, spec/v1).

    `files`: path in the repository -> SHA-256 of the bytes there. The commit is a subject too; git
    may name it by SHA-1, so the files are bound by their own SHA-256.
    """
    subjects = [{"name": "commit", "digest": {"gitCommit": commit}}]
    subjects += [{"name": path, "digest": {"sha256": files[path]}} for path in sorted(files)]
    value = {
        "_type": TYPE,
        "subject": subjects,
        "predicateType": PREDICATE,
        "predicate": {"what": what, "run": run, "plan_hash": plan_hash},
    }
    return contract.canonical(value) + b"\n"
