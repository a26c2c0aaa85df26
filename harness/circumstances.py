"""What is unusual about the repository that commitments stand in, a sentence each for the limits.

None of it stops a run: a commitment on the run's own branch holds in all of them. A reader must
know, because it bears on what the commits can prove or on where they can be found.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.commitments import Repository, content_at


def circumstances(repository: Repository, files: Mapping[str, bytes]) -> tuple[str, ...]:
    """Sentences about the repository; `files` are what is committed, path to bytes."""
    if repository.made:
        return (
            "no repository holds the plan: its commitments stand in one that was made for this "
            "run, so nothing outside the run shows when they were made",
        )
    found = [_shallow(repository), _detached(repository), _submodule(repository)]
    return tuple(filter(None, [*found, *_dirty(repository, files)]))


def _shallow(repository: Repository) -> str:
    if repository.git("rev-parse", "--is-shallow-repository", check=False) != "true":
        return ""
    return (
        "the repository is a shallow clone: earlier commitments that it lacks were not compared "
        "with the new test cases"
    )


def _detached(repository: Repository) -> str:
    head = repository.tip("HEAD")
    if head is None or repository.git("symbolic-ref", "-q", "HEAD", check=False):
        return ""
    return f"HEAD was detached at {head[:12]}: the run's branch begins there and on no branch"


def _submodule(repository: Repository) -> str:
    above = repository.git("rev-parse", "--show-superproject-working-tree", check=False)
    if not above:
        return ""
    return "the plan is in a submodule: its commitments are in the submodule's own repository"


def _dirty(repository: Repository, files: Mapping[str, bytes]) -> list[str]:
    """Files that HEAD holds in another form. One that HEAD does not hold is simply new."""
    if repository.tip("HEAD") is None:
        return []
    changed = [
        path
        for path, data in sorted(files.items())
        if (held := content_at(repository, "HEAD", path)) is not None and held != data
    ]
    return [f"{path} differed from HEAD's; the run's branch holds what was run" for path in changed]
