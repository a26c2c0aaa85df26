"""The commitments in the repository that the evidence folder stands in, if it stands in one.

The archive's own git objects prove content and order. What a repository adds is that others have
the commits too: in the history of what is checked out, before the commit that added the evidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from harness.commitments import Repository
from harness.errors import BadInput
from harness.report.evidence import Commit
from harness.verify.order import Order

RECORD = "closing.json"
"""The commit that first has this file below the folder added the evidence."""


def check_standing(folder: Path, commits: Sequence[Commit]) -> Order:
    """Lines for what the repository shows, phrases for what it does not.

    Raises BadInput for what the repository contradicts: another order, or evidence that was
    committed before its selection.
    """
    if not commits:
        return Order((), ())
    repository = Repository(folder, made=False)
    try:
        found = repository.read("rev-parse", "--show-toplevel")
    except BadInput:
        return _not_shown("there is no git on this computer")
    if not found.ok:
        return _not_shown("the evidence is in no repository that git can read")
    absent = [row for row in commits if repository.tip(row.commit) is None]
    if absent:
        return _not_shown(_absence(repository, absent[0]))
    for earlier, later in pairwise(commits):
        if not _leads(repository, earlier.commit, later.commit):
            raise BadInput(
                f"the commit of the {later.what} does not follow that of the {earlier.what} here",
                where=str(folder),
            )
    return _in_history(repository, commits[-1])


def _not_shown(why: str) -> Order:
    return Order((), (f"that others have the commitments: {why}",))


def _absence(repository: Repository, row: Commit) -> str:
    if repository.git("rev-parse", "--is-shallow-repository", check=False) == "true":
        return f"this clone is shallow and lacks {row.commit[:12]} (git fetch --unshallow)"
    return f"this repository lacks {row.commit[:12]} of the branch {row.branch}"


def _in_history(repository: Repository, last: Commit) -> Order:
    """Whether what is checked out has the commitments, and when the evidence came."""
    if not _leads(repository, last.commit, "HEAD"):
        return Order(
            (f"history   the commitments are here on {last.branch}, in order",),
            (f"that the commitments are in the history of HEAD: merge {last.branch}",),
        )
    line = f"history   the commitments are in the history of {repository.tip('HEAD')}, in order"
    added = repository.git(
        "log", "--diff-filter=A", "--format=%H", "HEAD", "--", RECORD, check=False
    ).split()
    if not added:
        return Order((line, "history   the evidence is not committed here"), ())
    first = added[-1]
    if _leads(repository, last.commit, first):
        return Order((line, f"history   the evidence came after them, with {first}"), ())
    if _leads(repository, first, last.commit):
        raise BadInput(
            f"the evidence was committed ({first[:12]}) before the {last.what} "
            f"({last.commit[:12]}) here",
            where=str(repository.top),
        )
    return Order(
        (line,),
        (f"that the evidence was committed after the {last.what}: {first[:12]} stands beside it",),
    )


def _leads(repository: Repository, earlier: str, later: str) -> bool:
    """Whether the later commit leads back to the earlier one."""
    return repository.read("merge-base", "--is-ancestor", earlier, later).ok
