"""The git objects that prove, without the repository, what was committed and in which order.

Raw commits from the plan's commitment to the selection, and the trees on the way from each commit
to the committed files. A reader hashes them again: git names an object by the hash of its kind,
its length and its bytes.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath

from harness import commitments
from harness.commitments import Repository


def commits_between(repository: Repository, earlier: str, later: str) -> dict[str, bytes]:
    """Raw commits by name: `later`, `earlier` and every commit on a way between them."""
    between = repository.git("rev-list", "--ancestry-path", f"{earlier}..{later}").split()
    names = dict.fromkeys([earlier, *between, later])
    return {name: commitments.raw_commit(repository, name) for name in names}


def trees_to(repository: Repository, commit: str, paths: Iterable[str]) -> dict[str, bytes]:
    """Raw trees by name, from the commit's own down to the folder of every path."""
    folders = {str(parent) for path in paths for parent in PurePosixPath(path).parents}
    found: dict[str, bytes] = {}
    for folder in sorted(folders):
        place = f"{commit}:" if folder == "." else f"{commit}:{folder}"
        name = repository.git("rev-parse", "--verify", place)
        found[name] = repository.read("cat-file", "tree", name).out
    return found
