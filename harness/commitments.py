"""Commitments in git, by plumbing and a private index.

Nothing of the user's repository is touched but objects and one branch `harness/<run id>`: not the
working tree, not the index, not HEAD.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import BadInput, Refused
from trainer import contract

BRANCHES = "refs/heads/harness/"
REMOTE_BRANCHES = "refs/remotes/*/harness/*"


@dataclass(frozen=True)
class Answer:
    """What a git command said."""

    ok: bool
    out: bytes
    err: bytes

    @property
    def said(self) -> str:
        """Its complaint on one line."""
        words = " ".join(self.err.decode(errors="replace").split())
        return words.removeprefix("fatal: ").removeprefix("error: ")[:400].rstrip(".") or "silently"


@dataclass(frozen=True)
class Repository:
    """A git repository and whether the harness made it."""

    top: Path
    made: bool

    def read(self, *arguments: str, stdin: bytes = b"", index: str | None = None) -> Answer:
        """Run one git command, whatever it answers. Raises BadInput when there is no git.

        Of the caller's surroundings only the user's configuration counts: no GIT_* variable, no
        hook and no file system monitor.
        """
        environment = {
            key: value for key, value in os.environ.items() if not key.startswith("GIT_")
        }
        environment.update({"LC_ALL": "C.UTF-8", "LANGUAGE": "", "GIT_TERMINAL_PROMPT": "0"})
        if index is not None:
            environment["GIT_INDEX_FILE"] = index
        quiet = ["-c", f"core.hooksPath={os.devnull}", "-c", "core.fsmonitor=false"]
        try:
            done = subprocess.run(
                ["git", "-C", str(self.top), *quiet, *arguments],
                input=stdin,
                capture_output=True,
                env=environment,
                check=False,
            )
        except FileNotFoundError:
            raise BadInput("git is not installed", next_command="apt-get install git") from None
        return Answer(done.returncode == 0, done.stdout, done.stderr)

    def git(self, *arguments: str, stdin: bytes = b"", index: str | None = None,
            check: bool = True) -> str:  # fmt: skip
        """Run one git command; its output without the last newline. Raises BadInput."""
        answer = self.read(*arguments, stdin=stdin, index=index)
        if check and not answer.ok:
            verb = next(word for word in arguments if not word.startswith("-") and "=" not in word)
            raise BadInput(
                f"git {verb} failed: {answer.said}",
                where=str(self.top),
                next_command=f"git -C {shlex.quote(str(self.top))} fsck",
            )
        return answer.out.decode(errors="replace").rstrip("\n") if answer.ok else ""

    def relative(self, path: Path) -> str:
        """A path inside the repository, as git writes it."""
        return path.resolve().relative_to(self.top.resolve()).as_posix()

    def tip(self, branch: str) -> str | None:
        """The branch's commit, or null."""
        return self.git("rev-parse", "-q", "--verify", f"{branch}^{{commit}}", check=False) or None


def find_repository(plan_folder: Path, run_folder: Path) -> Repository:
    """The repository that holds the plan; where there is none, one made in the run folder."""
    probe = Repository(plan_folder, made=False)
    answer = probe.read("rev-parse", "--show-toplevel")
    if answer.ok:
        return Repository(Path(os.fsdecode(answer.out.rstrip(b"\n"))), made=False)
    there = next((p for p in (plan_folder, *plan_folder.parents) if (p / ".git").exists()), None)
    if there is not None or "not a git repository" not in answer.said:
        raise BadInput(
            f"the repository that holds the plan cannot be used by git: {answer.said}",
            where=str(there or plan_folder),
            next_command=f"git -C {shlex.quote(str(plan_folder))} status",
        )
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
            _move(repository, branch, tip, "")
        return tip
    tree = _tree_with(repository, tip, files)
    parents = ["-p", tip] if tip else []
    commit = repository.git(
        *_identity(repository), "commit-tree", tree, *parents, "-F", "-", stdin=message.encode()
    )
    _move(repository, branch, commit, repository.tip(branch) or "")
    return commit


def _move(repository: Repository, branch: str, commit: str, before: str) -> None:
    """Point the branch at the commit. Raises BadInput; a branch `harness` is in the way of ours."""
    answer = repository.read("update-ref", branch, commit, before)
    if answer.ok:
        return
    git = f"git -C {shlex.quote(str(repository.top))}"
    if repository.tip(BRANCHES.rstrip("/")) is not None:
        raise BadInput(
            "a branch called 'harness' is in the way of the branches harness/RUN",
            where=str(repository.top),
            next_command=f"{git} branch -m harness NEW-NAME",
        )
    name = branch.removeprefix("refs/heads/")
    raise BadInput(
        f"the branch {name} cannot be written: {answer.said}",
        where=str(repository.top),
        next_command=f"{git} status",
    )


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
    found: list[str] = []
    for field, ours in (("user.name", "harness"), ("user.email", "harness@localhost")):
        if not repository.git("config", field, check=False):
            found += ["-c", f"{field}={ours}"]
    return found


def content_at(repository: Repository, commit: str, path: str) -> bytes | None:
    """A file's bytes in a commit; null when it is not there."""
    if not repository.git("ls-tree", commit, "--", path, check=False):
        return None
    answer = repository.read("cat-file", "blob", f"{commit}:{path}")
    return answer.out if answer.ok else None


def raw_commit(repository: Repository, commit: str) -> bytes:
    """The bytes of a commit object. Raises BadInput when it is gone."""
    answer = repository.read("cat-file", "commit", commit)
    if not answer.ok:
        raise BadInput(f"the commit {commit} is gone: {answer.said}", where=str(repository.top))
    return answer.out


def require_ancestor(repository: Repository, earlier: str, later: str, what: str) -> None:
    """Order by ancestry. Raises Refused when `earlier` is not an ancestor of `later`.

    So an amended, rebased, reset or removed branch is found: its tip no longer leads back to the
    commit that was recorded.
    """
    for commit in (earlier, later):
        if repository.tip(commit) is None:
            name = commit.removeprefix("refs/heads/")
            raise Refused(
                f"{what}: {name if name != commit else commit[:12]} is not in the repository",
                where=str(repository.top),
                next_command=_restore(repository, later, earlier),
            )
    if not repository.read("merge-base", "--is-ancestor", earlier, later).ok:
        raise Refused(
            f"{what}: commit {earlier[:12]} is not an ancestor of "
            f"{later.removeprefix('refs/heads/')[:60]}, which was amended, rebased or reset",
            where=str(repository.top),
            next_command=_restore(repository, later, earlier),
        )


def _restore(repository: Repository, branch: str, commit: str) -> str:
    """The command that puts a run's branch back, while its commit is still there."""
    if not branch.startswith(BRANCHES) or repository.tip(commit) is None:
        return ""
    words = ["git", "-C", str(repository.top), "update-ref", branch, commit]
    return shlex.join(words)


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
    """Every prepared.json on all harness/* branches, here and as fetched from remotes, and under
    evidence/ of HEAD, parsed."""
    found = repository.git("for-each-ref", "--format=%(objectname)", BRANCHES, REMOTE_BRANCHES)
    tips = found.split()
    head = repository.tip("HEAD")
    places = dict.fromkeys([*((tip, "") for tip in tips), *([(head, "evidence/")] if head else [])])
    blobs: dict[str, str] = {}
    for tip, below in places:
        for row in repository.read("ls-tree", "-r", "-z", tip).out.split(b"\0"):
            meta, _, path = row.partition(b"\t")
            name = os.fsdecode(path)
            if name.startswith(below) and name.rpartition("/")[2] == "prepared.json":
                blobs.setdefault(meta.split()[2].decode(), name)
    found_there = (_parsed(repository, blob, name) for blob, name in blobs.items())
    return [value for value in found_there if not _is_schema(value)]


def _is_schema(value: dict[str, Any]) -> bool:
    """A published JSON Schema bears the name of what it describes, and commits to nothing."""
    return "$schema" in value and "schema" not in value


def _parsed(repository: Repository, blob: str, name: str) -> dict[str, Any]:
    """An earlier prepared.json. Raises Refused: what cannot be read cannot be ruled out."""
    answer = repository.read("cat-file", "blob", blob)
    try:
        value = contract.parse(answer.out, where=name)
    except contract.ContractError as error:
        raise Refused(
            f"an earlier commitment cannot be read ({error}), so that new cases cannot be checked",
            where=f"{repository.top}: blob {blob}",
        ) from None
    return value if isinstance(value, dict) else {}
