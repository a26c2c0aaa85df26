"""Data sets whose revision is not pinned: said by `check`, refused by `prepare`."""

from __future__ import annotations

from collections.abc import Iterator

from harness.errors import BadInput
from harness.plan.data import HubText, ProbeSource
from harness.plan.finding import Finding, error
from harness.plan.load import LoadedPlan
from harness.plan.plan import Plan


def unpinned(plan: Plan) -> Iterator[tuple[str, HubText]]:
    """(JSON pointer, source) of every hub source without a revision."""
    sources: list[tuple[str, ProbeSource | None]] = [("/data/replay", plan.data.replay)]
    sources += [
        (f"/data/retention/{i}/source", probes.source)
        for i, probes in enumerate(plan.data.retention)
    ]
    for pointer, source in sources:
        if isinstance(source, HubText) and source.revision is None:
            yield f"{pointer}/revision", source


def pin_command(source: HubText) -> str:
    """The command that prints the revision to pin."""
    return f"git ls-remote https://huggingface.co/datasets/{source.repo} HEAD"


def pin_findings(plan: Plan) -> Iterator[Finding]:
    """One error for each source that is not pinned."""
    for pointer, source in unpinned(plan):
        yield error(
            pointer,
            f"the data set '{source.repo}' is not pinned to a revision, and a branch can move",
            next_command=pin_command(source),
        )


def require_pinned(loaded: LoadedPlan) -> None:
    """Raise BadInput at the first source without a revision."""
    for finding in pin_findings(loaded.plan):
        raise BadInput(
            finding.what,
            where=f"{loaded.path}#{finding.pointer}",
            next_command=finding.next_command,
        )
