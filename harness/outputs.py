"""What a trainer left, checked before its attempt counts as done.

Exit status 0 is a claim. A file that is missing, malformed or not what the receipt says makes the
attempt a failed one, so that the next attempt can do better and the run never hangs on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, TypeVar

from harness.errors import BadInput
from harness.group_job import GroupJob
from harness.hosts.protocol import Host
from harness.measuring.rows import RetentionLine
from harness.plan.kinds import CountOrZero
from harness.rank_bodies import read_rank_receipt
from harness.receipts import RankReceipt
from harness.strict import Model, build, load, read_plain
from harness.study import Study
from trainer import contract

M = TypeVar("M", bound=Model)
ROOT_S = 3600.0
MOST_TOKENS = 1 << 31
"""Token ids are below this; one that a tokenizer does not know is decoded to nothing."""


class AnswerLine(Model):
    """A line of answers-ROLE.jsonl."""

    id: str
    tokens: tuple[CountOrZero, ...]
    stopped: Literal["end", "limit"]


def fetch(host: Host, path: str, local: Path) -> Path:
    """Fetch a file that must be there. Raises BadInput when it is missing or empty."""
    try:
        there = bool(host.read(path, limit=1))
    except OSError as error:
        raise BadInput(f"cannot be read ({error.strerror})", where=f"{host.name}: {path}") from None
    if not there:
        raise BadInput("is missing or empty", where=f"{host.name}: {path}")
    host.get(path, local)
    return local


def receipts(study: Study, group: GroupJob, body: type[Model]) -> tuple[RankReceipt, ...]:
    """Every rank's receipt, with a body of its task's form. Raises BadInput."""
    found = []
    for rank, host in enumerate(group.hosts):
        local = study.work / "outputs" / group.job / f"receipt-{rank}.json"
        local.parent.mkdir(parents=True, exist_ok=True)
        receipt = read_rank_receipt(fetch(host, f"{group.out}/receipt-{rank}.json", local))
        said = (receipt.task, receipt.rank, receipt.workers)
        due = (group.recipe["task"], rank, len(group.hosts))
        if said != due:
            raise BadInput(
                f"is of task {said[0]}, rank {said[1]} of {said[2]}; "
                f"task {due[0]}, rank {due[1]} of {due[2]} is due",
                where=f"{host.name}: receipt-{rank}.json",
            )
        build(body, receipt.body, where=f"{host.name}: receipt-{rank}.json#/body")
        found.append(receipt)
    return tuple(found)


def candidate(host: Host, folder: str, root: str) -> None:
    """Raises BadInput unless the candidate's files are there and hold the reported parameters."""
    for name in contract.SEED_FILES:
        try:
            there = bool(host.read(f"{folder}/{name}", limit=1))
        except OSError:
            there = False
        if not there:
            raise BadInput("is missing or empty", where=f"{host.name}: {folder}/{name}")
    file = f"{host.work}/{folder}/model.safetensors"
    done = host.helper("tree", "root", file, timeout_s=ROOT_S, check=False)
    if done.exit_code:
        said = (done.stderr.strip().splitlines() or ["it cannot be read"])[-1]
        raise BadInput(said, where=f"{host.name}: {folder}")
    found = str(contract.parse(done.stdout)["root"])
    if found != root:
        raise BadInput(
            f"the candidate has the parameter root {found[:12]}, its receipt says {root[:12]}",
            where=f"{host.name}: {folder}",
        )


def answers(path: Path, ids: Sequence[str], *, most_tokens: int) -> None:
    """Raises BadInput unless the answers are those of the cases, in order, in token ids."""
    rows = list(_lines(AnswerLine, path))
    if [row.id for _, row in rows] != list(ids):
        raise BadInput(
            f"has {len(rows)} answers that are not those of the {len(ids)} cases in their order",
            where=str(path),
        )
    for where, row in rows:
        if len(row.tokens) > most_tokens:
            raise BadInput(f"has {len(row.tokens)} tokens, over {most_tokens}", where=where)
        if row.tokens and max(row.tokens) >= MOST_TOKENS:
            raise BadInput(f"has the token {max(row.tokens)}, which is no token id", where=where)


def retention(path: Path, documents: int) -> None:
    """Raises BadInput unless there is one line a document."""
    ids = [row.id for _, row in _lines(RetentionLine, path)]
    if len(ids) != documents or len(set(ids)) != documents:
        raise BadInput(f"has {len(set(ids))} documents, {documents} are due", where=str(path))


def _lines(kind: type[M], path: Path) -> Iterator[tuple[str, M]]:
    for number, line in enumerate(read_plain(path).split(b"\n"), start=1):
        if line:
            where = f"{path} line {number}"
            yield where, load(kind, line, where=where)
