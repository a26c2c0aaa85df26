"""The commitments, proved from raw git objects: content and order, not time."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from harness.errors import BadInput
from harness.report.evidence import Commit
from harness.selection import Selection
from harness.strict import load_file

NOT_BOUND = (
    "which files the commits hold: this archive has no git trees (it was made before they were "
    "kept)"
)


@dataclass(frozen=True)
class Order:
    """What the commit objects prove."""

    lines: tuple[str, ...]
    cannot: tuple[str, ...]


def check_commitments(folder: Path, commits: Sequence[Commit]) -> Order:
    """Raises BadInput unless each commit holds the archive's own files, and the selection's leads
    back to the plan's."""
    if not commits:
        return Order((), ("the order of the commitments: the archive names no commit",))
    lines, bound = [], True
    for row in commits:
        tree = _headers(folder, row.commit)["tree"][0]
        for member, path in row.paths.items():
            _require_same(folder, tree, member, path, row)
        bound = bound and bool(row.paths)
        lines.append(f"commit    {row.commit}  {row.what}")
    for earlier, later in pairwise(commits):
        _require_ancestor(folder, earlier, later)
    return Order(tuple(lines), () if bound else (NOT_BOUND,))


def check_selection(folder: Path, *, plan_hash: str, identity: str, scored: dict[str, str]) -> None:
    """Raises BadInput unless selection.json is of this plan and names what was scored, by root."""
    path = folder / "selection.json"
    selection = load_file(Selection, path)
    if (selection.plan_hash, selection.identity) != (plan_hash, identity):
        raise BadInput("is of another plan or of other inputs", where=str(path))
    named = selection.named()
    for name, root in scored.items():
        if name not in named or named[name].parameter_root != root:
            raise BadInput(f"does not name the '{name}' that was scored", where=str(path))


def git_name(kind: str, data: bytes, *, like: str) -> str:
    """The name of an object in a repository of the same hash as the name `like`."""
    whole = f"{kind} {len(data)}\0".encode() + data
    made = hashlib.sha1 if len(like) == 40 else hashlib.sha256
    return made(whole).hexdigest()


def _object(folder: Path, kind: str, name: str) -> bytes:
    path = folder / f"{kind}s" / name
    if not name.isalnum() or not path.is_file():
        raise BadInput(f"the git {kind} {name[:64]} is missing", where=str(folder / f"{kind}s"))
    data = path.read_bytes()
    if git_name(kind, data, like=name) != name:
        raise BadInput(f"is not the git {kind} of that name", where=str(path))
    return data


def _headers(folder: Path, commit: str) -> dict[str, list[str]]:
    """A commit's header lines by their first word."""
    found: dict[str, list[str]] = {"tree": [], "parent": []}
    for line in _object(folder, "commit", commit).split(b"\n\n")[0].split(b"\n"):
        word, _, rest = line.partition(b" ")
        found.setdefault(word.decode(errors="replace"), []).append(rest.decode(errors="replace"))
    if len(found["tree"]) != 1:
        raise BadInput("is not a commit", where=str(folder / "commits" / commit))
    return found


def _require_ancestor(folder: Path, earlier: Commit, later: Commit) -> None:
    waiting, seen = [later.commit], set[str]()
    while waiting:
        name = waiting.pop()
        if name == earlier.commit:
            return
        if name not in seen and (folder / "commits" / name).is_file():
            seen.add(name)
            waiting += _headers(folder, name)["parent"]
    raise BadInput(
        f"the commit of the {later.what} does not lead back to that of the {earlier.what}",
        where=str(folder / "commits.json"),
    )


def _require_same(folder: Path, tree: str, member: str, path: str, row: Commit) -> None:
    """The archive's member is the blob that the commit has at the path."""
    name = tree
    for step in path.split("/"):
        entries = _entries(_object(folder, "tree", name), digest_bytes=len(tree) // 2)
        if step not in entries:
            raise BadInput(f"the commit {row.commit[:12]} holds no {path}", where=row.what)
        name = entries[step]
    data = (folder / member).read_bytes() if (folder / member).is_file() else b""
    if git_name("blob", data, like=name) != name:
        raise BadInput(f"{member} differs from what the commit {row.commit[:12]} holds")


def _entries(tree: bytes, *, digest_bytes: int) -> dict[str, str]:
    """Object names by file name."""
    found: dict[str, str] = {}
    while tree:
        head, _, rest = tree.partition(b"\0")
        found[head.partition(b" ")[2].decode(errors="replace")] = rest[:digest_bytes].hex()
        tree = rest[digest_bytes:]
    return found
