"""Commitments in git, by plumbing and a private index.

Nothing of the user's repository is touched but objects and one branch `harness/<run id>`: not the
working tree, not the index, not HEAD.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import BadInput, Refused
from trainer import contract

BRANCHES = "refs/heads/harness/"


@dataclass(frozen=True)
class Repository:
    """A git repository and whether the harness made it."""

    top: Path
    made: bool

    def git(self, *arguments: str, stdin: bytes = b"", index: str | None = None,
            check: bool = True) -> str:  # fmt: skip
        """Run one git command; its output without the last newline. Raises BadInput."""
        environment = {
            key: value for key, value in os.environ.items() if not key.startswith("GIT_")
        }
        environment.update({"LC_ALL": "C.UTF-8", "GIT_TERMINAL_PROMPT": "0"})
        if index is not None:
            environment["GIT_INDEX_FILE"] = index
        done = subprocess.run(
            ["git", "-C", str(self.top), *arguments],
            input=stdin,
            capture_output=True,
            env=environment,
            check=False,
        )
        if check and done.returncode:
            message = done.stderr.decode(errors="replace").strip().splitlines()
            raise BadInput(
                f"git {arguments[0]} failed: {message[-1] if message else done.returncode}",
                where=str(self.top),
            )
        return done.stdout.decode(errors="replace").rstrip("\n") if not done.returncode else ""

    def relative(self, path: Path) -> str:
        """A path inside the repository, as git writes it."""
        return path.resolve().relative_to(self.top.resolve()).as_posix()

    def tip(self, branch: str) -> str | None:
        """The branch's commit, or null."""
        return self.git("rev-parse", "-q", "--verify", f"{branch}^{{commit}}", check=False) or None


def find_repository(plan_folder: Path, run_folder: Path) -> Repository:
    """The repository that holds the plan; where there is none, one made in the run folder."""
    probe = Repository(plan_folder, made=False)
    try:
        top = probe.git("rev-parse", "--show-toplevel", check=False)
    except FileNotFoundError:
        raise BadInput("git is not installed", next_command="apt-get install git") from None
    if top:
        return Repository(Path(top), made=False)
    made = Repository(run_folder / "repository", made=True)
    if not (made.top / ".git").exists():
        made.top.mkdir(parents=True, exist_ok=True)
        made.git("init", "-q", "-b", "main")
    return made


def branch_of(run: str) -> str:
    """The branch that carries a run's commitments."""
    return f"{BRANCHES}{run}"


def commit_files(repository: Repository, run: str, files: dict[str, bytes], message: str) -> str:
    """Commit files (path -> bytes) onto the run's branch; returns the commit.

    When the tip already holds exactly these bytes, the tip is returned and nothing is made, which
    is also how an interrupted commit is adopted.
    """
    branch = branch_of(run)
    tip = repository.tip(branch) or repository.tip("HEAD")
    if tip is not None and all(
        content_at(repository, tip, path) == data for path, data in files.items()
    ):
        if repository.tip(branch) is None:
            repository.git("update-ref", branch, tip, "")
        return tip
    tree = _tree_with(repository, tip, files)
    parents = ["-p", tip] if tip else []
    commit = repository.git(
        *_identity(repository), "commit-tree", tree, *parents, "-F", "-", stdin=message.encode()
    )
    repository.git("update-ref", branch, commit, repository.tip(branch) or "")
    return commit


def _tree_with(repository: Repository, base: str | None, files: dict[str, bytes]) -> str:
    with tempfile.TemporaryDirectory(prefix="harness-index-") as folder:
        index = str(Path(folder) / "index")
        if base is not None:
            repository.git("read-tree", base, index=index)
        for path, data in files.items():
            blob = repository.git("hash-object", "-w", "--stdin", stdin=data)
            repository.git(
                "update-index", "--add", "--cacheinfo", f"100644,{blob},{path}", index=index
            )
        return repository.git("write-tree", index=index)


def _identity(repository: Repository) -> list[str]:
    """Who commits: the user as configured, else the harness itself."""
    if repository.git("config", "user.email", check=False):
        return []
    return ["-c", "user.name=harness", "-c", "user.email=harness@localhost"]


def content_at(repository: Repository, commit: str, path: str) -> bytes | None:
    """A file's bytes in a commit; null when it is not there."""
    if not repository.git("ls-tree", commit, "--", path, check=False):
        return None
    done = subprocess.run(
        ["git", "-C", str(repository.top), "cat-file", "blob", f"{commit}:{path}"],
        capture_output=True,
        check=False,
    )
    return done.stdout if done.returncode == 0 else None


def require_ancestor(repository: Repository, earlier: str, later: str, what: str) -> None:
    """Order by ancestry. Raises Refused when `earlier` is not an ancestor of `later`."""
    base = repository.git("merge-base", earlier, later, check=False)
    if base != repository.tip(earlier):
        raise Refused(
            f"{what}: commit {earlier[:12]} is not an ancestor of {later[:12]}",
            where=str(repository.top),
        )


def require_content(repository: Repository, commit: str, files: dict[str, bytes]) -> None:
    """Raises Refused when a committed file differs from the bytes in hand."""
    for path, data in files.items():
        found = content_at(repository, commit, path)
        if found is None:
            raise Refused(f"commit {commit[:12]} does not hold {path}", where=str(repository.top))
        if found != data:
            raise Refused(
                f"{path} differs from what commit {commit[:12]} holds", where=str(repository.top)
            )


def earlier_commitments(repository: Repository) -> list[dict[str, Any]]:
    """Every prepared.json on all harness/* branches and under evidence/ of HEAD, parsed."""
    tips = repository.git("for-each-ref", "--format=%(objectname)", BRANCHES).split()
    head = repository.tip("HEAD")
    blobs: dict[str, None] = {}
    for tip in [*tips, *([head] if head else [])]:
        for line in repository.git("ls-tree", "-r", tip).splitlines():
            meta, _, path = line.partition("\t")
            on_branch = tip != head and path.endswith("prepared.json")
            if on_branch or (path.startswith("evidence/") and path.endswith("prepared.json")):
                blobs[meta.split()[2]] = None
    return [
        contract.parse(repository.git("cat-file", "blob", blob).encode(), where=f"blob {blob}")
        for blob in blobs
    ]
