"""Signatures and time stamps of the commitments, checked from the evidence alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness.attest.statement import FOLDER, statement
from harness.clock import utc_text
from harness.errors import BadInput
from harness.receipts import Attestation
from harness.report.evidence import PLAN_COMMITTED, SELECTION_COMMITTED, Commit, Evidence
from trainer import contract

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

CLOCK = "the clock: commit dates are set by whoever commits; the order is proved, not the time"
CLOCK_BEYOND = (
    "the clock beyond the time stamps: they show that the commitments existed by then; when "
    "training and scoring ran is the operator's word"
)


@dataclass(frozen=True)
class Trust:
    """What a reader brings: keys and certificates (PEM) from elsewhere than the evidence."""

    signers: tuple[Ed25519PublicKey, ...] = ()
    certificates: bytes = b""


NOTHING = Trust()


@dataclass(frozen=True)
class _Commitment:
    """One commitment and what was recorded of who signed and stamped it."""

    name: str
    row: Commit
    told: Attestation | None


def check_attested(
    folder: Path, evidence: Evidence, trust: Trust = NOTHING
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(lines, what is not proved). Raises BadInput for a signature or stamp that does not hold, is
    missing though it was recorded, or is not of what the reader trusts."""
    both = _commitments(evidence)
    lines: list[str] = []
    unsigned, unstamped, stamped = [], [], []
    for each in both:
        payload = _payload(folder, evidence, each)
        key = _check_signature(folder, each, payload, trust)
        if key:
            lines.append(f"signed    {each.row.what}, by {key}")
        else:
            unsigned.append(each.row.what)
        at, line = _check_stamp(folder, each, payload, trust)
        if at:
            stamped.append((at, each.row.what))
            lines.append(line)
        else:
            unstamped.append(each.row.what)
    if stamped != sorted(stamped, key=lambda pair: pair[0]):
        raise BadInput(f"the {stamped[1][1]} was stamped before the {stamped[0][1]}", where=FOLDER)
    return tuple(lines), (
        CLOCK if unstamped else CLOCK_BEYOND,
        *_open_questions(unsigned, unstamped, both, trust),
    )


def _open_questions(
    unsigned: Sequence[str], unstamped: Sequence[str], both: Sequence[_Commitment], trust: Trust
) -> list[str]:
    found = []
    if unsigned:
        found.append(f"who committed: not signed ({', '.join(unsigned)})")
    if len(unsigned) < len(both) and not trust.signers:
        found.append("whose key signed: compare it with the signer's own (--signer FILE)")
    if unstamped and len(unstamped) < len(both):
        found.append(f"when it existed: not time-stamped ({', '.join(unstamped)})")
    if len(unstamped) < len(both) and not trust.certificates:
        found.append(
            "that the certificates in the evidence are the time-stamp authority's: compare with "
            "its own (--timestamp-ca FILE)"
        )
    return found


def _commitments(evidence: Evidence) -> tuple[_Commitment, ...]:
    """Raises BadInput for what was signed or stamped and is no commitment of the archive."""
    told = evidence.attestations
    names = {PLAN_COMMITTED: "plan", SELECTION_COMMITTED: "selection"}
    rows = {row.what: row for row in evidence.commits if row.what in names}
    for what in told:
        if what not in rows:
            raise BadInput(f"names no {what}, and the receipts say that it was signed or stamped",
                           where="commits.json")  # fmt: skip
    return tuple(_Commitment(names[what], row, told.get(what)) for what, row in rows.items())


def _payload(folder: Path, evidence: Evidence, each: _Commitment) -> bytes:
    """The statement that the evidence gives; compared with the one that was kept."""
    files = {
        path: contract.hash_file(folder / member)[0] for member, path in each.row.paths.items()
    }
    payload = statement(
        what=each.row.what, run=evidence.results.run, plan_hash=evidence.plan_hash,
        commit=each.row.commit, files=files,
    )  # fmt: skip
    if each.told is not None and _member(folder, f"{each.name}.json") != payload:
        raise BadInput(
            f"is not the statement of the commitment ({each.row.what})",
            where=f"{FOLDER}/{each.name}.json",
        )
    return payload


def _check_signature(folder: Path, each: _Commitment, payload: bytes, trust: Trust) -> str:
    """The fingerprint of the key that signed; '' when nothing is signed."""
    if each.told is None or each.told.signature is None:
        if trust.signers:
            raise BadInput("is not signed, and --signer names a key", where=each.row.what)
        return ""
    from harness.attest.signing import check_envelope, fingerprint, public_keys

    where = f"{FOLDER}/{each.name}.pub"
    key = public_keys(_member(folder, f"{each.name}.pub"), where=where)[0]
    if fingerprint(key) != each.told.key:
        raise BadInput(f"is {fingerprint(key)}, and {each.told.key} was recorded", where=where)
    known = [fingerprint(one) for one in trust.signers]
    if known and fingerprint(key) not in known:
        raise BadInput(f"is {fingerprint(key)}, and --signer names {', '.join(known)}", where=where)
    envelope = f"{each.name}.dsse.json"
    check_envelope(_member(folder, envelope), payload, key, where=f"{FOLDER}/{envelope}")
    return fingerprint(key)


def _check_stamp(folder: Path, each: _Commitment, payload: bytes, trust: Trust) -> tuple[str, str]:
    """(time, line); ('', '') when nothing is stamped."""
    if each.told is None or each.told.stamp is None:
        if trust.certificates:
            raise BadInput(
                "has no time stamp, and --timestamp-ca names an authority", where=each.row.what
            )
        return "", ""
    from harness.attest.stamping import check_stamp, signer_name

    where = f"{FOLDER}/{each.name}.tsr"
    reply, own = _member(folder, f"{each.name}.tsr"), _member(folder, f"{each.name}.pem")
    at = utc_text(check_stamp(reply, payload, own, where=where))
    if trust.certificates:
        check_stamp(reply, payload, trust.certificates, where=f"{where} with --timestamp-ca")
    if at != each.told.stamped_utc:
        raise BadInput(f"says {at}, and {each.told.stamped_utc} was recorded", where=where)
    return at, f"stamped   {each.row.what}, {at} by {signer_name(reply, where=where)}"


def _member(folder: Path, name: str) -> bytes:
    path = folder / FOLDER / name
    if not path.is_file():
        raise BadInput("is missing, and the receipts name it", where=f"{FOLDER}/{name}")
    return path.read_bytes()
