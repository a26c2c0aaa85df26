"""The exposure ledger: which cases earlier studies have trained on or scored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from harness.errors import BadInput, Refused
from harness.plan import Plan

ID_DIGITS = 16
"""Hex digits of an id that the ledger keeps."""

ROLES = ("train", "replay", "development", "test", "retention")
"""Trained on: train, replay. Scored: development, test, retention."""

CHECKED = ("train", "development", "test", "retention")
"""Roles whose ids must be new. Replay is text that may be trained on again."""

Exposure = Mapping[str, Iterable[str]]


@dataclass(frozen=True)
class Commitment:
    """What an earlier prepared.json says of its cases."""

    plan_hash: str
    name: str
    exposure: dict[str, frozenset[str]]


@dataclass(frozen=True)
class Ledger:
    """Earlier commitments, asked on behalf of one plan.

    `plan_hash` is the asking plan's: commitments of the same plan make it a replication.
    """

    plan_hash: str
    commitments: tuple[Commitment, ...] = ()


def build_ledger(plan_hash: str, commitments: Iterable[Mapping[str, Any]]) -> Ledger:
    """The ledger from earlier prepared.json objects: plan_hash, plan (or name), exposure.

    The same commitment seen twice (on a branch and in evidence) counts once. Raises BadInput for
    an object without those fields or with an unknown role.
    """
    found: dict[tuple[str, str], Commitment] = {}
    for number, value in enumerate(commitments):
        commitment = _commitment(value, where=f"commitment {number}")
        key = (commitment.plan_hash, commitment.name)
        before = found.get(key)
        found[key] = commitment if before is None else _merged(before, commitment)
    return Ledger(plan_hash, tuple(found[key] for key in sorted(found)))


def _commitment(value: Mapping[str, Any], *, where: str) -> Commitment:
    try:
        exposure = {
            role: frozenset(identity[:ID_DIGITS] for identity in ids)
            for role, ids in value["exposure"].items()
        }
        name = value["plan"] if "plan" in value else value["name"]
        commitment = Commitment(value["plan_hash"], name, exposure)
    except (KeyError, TypeError, AttributeError) as error:
        raise BadInput(
            f"an earlier prepared.json lacks plan_hash, plan or exposure ({error})", where=where
        ) from None
    unknown = sorted(set(exposure) - set(ROLES))
    if unknown:
        raise BadInput(f"an earlier prepared.json has the unknown role '{unknown[0]}'", where=where)
    return commitment


def _merged(one: Commitment, two: Commitment) -> Commitment:
    roles = sorted({*one.exposure, *two.exposure})
    none = frozenset[str]()
    exposure = {role: one.exposure.get(role, none) | two.exposure.get(role, none) for role in roles}
    return Commitment(one.plan_hash, one.name, exposure)


def check(plan: Plan, exposure: Exposure, ledger: Ledger) -> tuple[str, ...]:
    """Refuse cases that an earlier study has trained on or scored.

    Returns sentences for the report's limits: a declared re-use of a role, and a replication.
    Raises Refused naming the earlier plan, the role, how many ids, and the first of them.
    """
    declared = {entry.role: entry.reason for entry in plan.data.exposed}
    notes: list[str] = []
    for earlier in ledger.commitments:
        if earlier.plan_hash == ledger.plan_hash:
            notes.append(f"This is a replication: the plan '{earlier.name}' was prepared before.")
            continue
        for role in CHECKED:
            ids = [identity[:ID_DIGITS] for identity in exposure.get(role, ())]
            for used_as in ROLES:
                seen = [one for one in ids if one in earlier.exposure.get(used_as, ())]
                if not seen:
                    continue
                what = (
                    f"{len(seen)} of {len(ids)} {role} cases were in the role {used_as} of the "
                    f"earlier plan '{earlier.name}'"
                )
                if role not in declared:
                    raise Refused(
                        f"{what}, the first is {seen[0]}; change the plan's seed, or declare "
                        f"data.exposed for {role}",
                        where="plan#/data/exposed",
                    )
                notes.append(f"{what}: {declared[role]}")
    return tuple(notes)
