"""The files of the prepared folder (docs/contract.md) and the order of training."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from harness.inputs.masks import Document
from harness.tasks.cases import Case
from harness.tasks.draws import Draws
from harness.tasks.texts import Text
from trainer import contract

OPERATOR_PREFIX = "text."
OPERATOR_SUFFIX = ".answers.jsonl"
"""Files with either are the operator's: hosts never get them."""


def is_operator_side(path: str) -> bool:
    """Whether a prepared file holds answers or texts that no host may see."""
    return path.startswith(OPERATOR_PREFIX) or path.endswith(OPERATOR_SUFFIX)


def deal_schedule(seed: str, *, documents: int, updates: int, global_batch: int) -> list[list[int]]:
    """For every update the document numbers in it.

    The documents are shuffled anew every time round, so that no document is used twice more often
    than another.
    """
    draws = Draws(seed, "train", "schedule")
    order: list[int] = []
    while len(order) < updates * global_batch:
        order.extend(draws.shuffled(range(documents)))
    return [order[at : at + global_batch] for at in range(0, updates * global_batch, global_batch)]


def write_schedule(folder: Path, updates: list[list[int]]) -> None:
    """schedule.json"""
    contract.write_json(folder / "schedule.json", {"updates": updates})


def write_corpus(
    folder: Path, corpus: str, rows: Iterable[tuple[str, str, Document, float]]
) -> None:
    """train.CORPUS.jsonl from (id, kind, document, weight)."""
    contract.write_lines(
        folder / f"train.{corpus}.jsonl",
        (
            {
                "id": identity,
                "kind": kind,
                "tokens": document.tokens,
                "targets": document.targets,
                "weight": weight,
            }
            for identity, kind, document, weight in rows
        ),
    )


def task_text(case: Case, text: Text, *, damaged: bool) -> dict[str, Any]:
    """A line of text.CORPUS.jsonl for a task: its messages as trained on."""
    return {
        "id": case.id,
        "kind": "task",
        "family": case.family,
        "wording": case.wording,
        "messages": text.rows(),
        "damaged": damaged,
    }


def other_text(text: Text, kind: str) -> dict[str, Any]:
    """A line of text.*.jsonl for replay or a probe."""
    return {
        "id": text.id,
        "kind": kind,
        "family": None,
        "wording": None,
        "messages": text.rows(),
        "damaged": False,
    }


def write_texts(folder: Path, name: str, rows: Iterable[dict[str, Any]]) -> None:
    """text.NAME.jsonl, operator-side; NAME is a corpus, or 'retention.' and a probe set's name."""
    contract.write_lines(folder / f"text.{name}.jsonl", rows)


def write_cases(
    folder: Path, role: str, cases: Sequence[Case], prompts: Sequence[Sequence[int]]
) -> None:
    """ROLE.cases.jsonl (no answers) and, operator-side, ROLE.answers.jsonl."""
    contract.write_lines(
        folder / f"{role}.cases.jsonl",
        ({"id": case.id, "tokens": tokens} for case, tokens in zip(cases, prompts, strict=True)),
    )
    contract.write_lines(
        folder / f"{role}.answers.jsonl",
        (
            {
                "id": case.id,
                "family": case.family,
                "wording": case.wording,
                "prompt": case.prompt,
                "expected": case.answer,
            }
            for case in cases
        ),
    )


def write_probes(
    folder: Path, name: str, texts: Sequence[Text], documents: Sequence[Document]
) -> None:
    """retention.NAME.jsonl and, operator-side, text.retention.NAME.jsonl."""
    contract.write_lines(
        folder / f"retention.{name}.jsonl",
        (
            {"id": text.id, "tokens": document.tokens, "targets": document.targets}
            for text, document in zip(texts, documents, strict=True)
        ),
    )
    write_texts(folder, f"retention.{name}", (other_text(text, "retention") for text in texts))
