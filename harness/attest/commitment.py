"""Signing and stamping a commitment of a run, and keeping to it when the run goes on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from harness.attest.choice import Attesting
from harness.attest.statement import FOLDER, statement
from harness.clock import parse_utc, utc_text
from harness.errors import BadInput, Waiting
from harness.receipts import Attestation, CommitReceipt
from harness.store.protocol import Artifact
from harness.study import Study
from trainer import contract

CLOCKS_APART_S = 60.0
"""From here a difference between our clock and the authority's is said."""


def keep_to(study: Study, attesting: Attesting, committed: CommitReceipt | None) -> Study:
    """The study with what the user chose. Raises when the plan was signed by another key: found
    before hosts do anything, not when the selection is due."""
    key = committed.attestation.key if committed and committed.attestation else None
    selected = study.journal.find("receipt", "select") is not None
    if key is not None and not selected:
        if attesting.signer is None:
            raise Waiting(
                f"the plan's commitment is signed by {key}, and the selection must be too",
                where=study.run,
                next_command=study.again("--sign", "KEY"),
            )
        if attesting.signer.fingerprint != key:
            raise BadInput(
                f"is {attesting.signer.fingerprint}, and the plan's commitment is signed by {key}",
                where="--sign",
            )
    return replace(study, attesting=attesting)


def attest(
    study: Study, name: str, *, what: str, commit: str, files: Mapping[str, bytes],
    of_plan: Attestation | None = None,
) -> tuple[Attestation | None, tuple[str, ...]]:  # fmt: skip
    """Sign and stamp the commitment `name` ('plan' or 'selection') as the user asked.

    The selection asks the authority that stamped the plan's commitment (`of_plan`). Returns what
    there is and sentences for the limits. Raises Waiting when the plan's commitment gets no
    stamp; hosts wait for the selection, so a missing stamp of it is only said.
    """
    if not (study.attesting.signer or study.attesting.authority or (of_plan and of_plan.stamp)):
        return None, ()
    payload = statement(
        what=what, run=study.run, plan_hash=study.loaded.hash, commit=commit,
        files={path: contract.sha256(data) for path, data in files.items()},
    )  # fmt: skip
    made = study.journal.effect(
        f"attest/{name}",
        Attestation,
        intent={"statement": contract.sha256(payload)},
        act=lambda: _signed(study, name, payload, of_plan),
        adopt=lambda: None,
    )
    return made, _notes(made, what)


def _signed(study: Study, name: str, payload: bytes, of_plan: Attestation | None) -> Attestation:
    def put(data: bytes, file: str) -> Artifact:
        return study.store.put_bytes(data, name=f"{FOLDER}/{file}")

    made = Attestation(statement=put(payload, f"{name}.json"))
    signer = study.attesting.signer
    if signer is not None:
        made = made.model_copy(
            update={
                "signature": put(signer.sign(payload), f"{name}.dsse.json"),
                "signer": put(signer.public_line, f"{name}.pub"),
                "key": signer.fingerprint,
            }
        )
    from harness.attest.stamping import Authority, ask

    authority = study.attesting.authority
    if authority is None and of_plan and of_plan.authority and of_plan.authority_url:
        path = study.work / "authority.pem"
        study.store.fetch(of_plan.authority, path)
        authority = Authority(of_plan.authority_url, path.read_bytes())
    if authority is None:
        return made
    study.progress.note(f"asking {authority.url} for a time stamp")
    try:
        stamp = ask(authority, payload, sleep=study.clock.sleep)
    except Waiting as error:
        if of_plan is None:
            raise
        return made.model_copy(update={"missing": error.sentence()})
    return made.model_copy(
        update={
            "stamp": put(stamp.reply, f"{name}.tsr"),
            "authority": put(authority.certificates, f"{name}.pem"),
            "authority_url": authority.url,
            "stamped_utc": utc_text(stamp.at),
            "asked_utc": study.clock.utc(),
        }
    )


def _notes(made: Attestation, what: str) -> tuple[str, ...]:
    if made.missing:
        return (f"The {what} was not time-stamped: {made.missing}",)
    if made.stamped_utc and made.asked_utc:
        ahead = (parse_utc(made.asked_utc) - parse_utc(made.stamped_utc)).total_seconds()
        if abs(ahead) > CLOCKS_APART_S:
            side = "ahead of" if ahead > 0 else "behind"
            return (
                f"The operator's clock was {abs(ahead):.0f} s {side} the time-stamp authority's "
                f"when the {what} was stamped",
            )
    return ()
