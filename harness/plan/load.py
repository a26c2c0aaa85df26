"""Reading plan.json: strict, with the hash of the file as written."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from harness.errors import BadInput, command
from harness.plan.kinds import Misfit
from harness.plan.plan import Plan
from harness.strict import load, read_plain
from trainer import contract

MAX_PLAN_BYTES = 1024 * 1024


@dataclass(frozen=True)
class LoadedPlan:
    """A plan with where it came from. `hash` is RFC 8785 over the file, no defaults filled in."""

    plan: Plan
    path: Path
    hash: str
    data: bytes

    @property
    def folder(self) -> Path:
        """The folder that paths in the plan are relative to."""
        return self.path.parent


def load_plan(path: Path) -> LoadedPlan:
    """Read a plan file. Raises BadInput with file and JSON pointer."""
    try:
        if path.is_dir():
            path = path / "plan.json"
        data = read_plain(path, limit=MAX_PLAN_BYTES)
    except OSError as error:
        raise BadInput(
            f"the plan cannot be read ({error.strerror})",
            where=str(path),
            next_command="harness init my-study",
        ) from None
    try:
        plan = load(Plan, data, where=str(path), next_command=command("check", path))
    except BadInput as bad:
        raise _placed(bad) from None
    try:
        digest = contract.hash_of(contract.parse(data))
    except contract.ContractError as error:
        raise BadInput(str(error), where=str(path)) from None
    return LoadedPlan(plan=plan, path=path.resolve(), hash=digest, data=data)


def _placed(bad: BadInput) -> BadInput:
    """The error with the place that a rule over several fields named (`kinds.Misfit`)."""
    fault = bad.__context__
    if isinstance(fault, ValidationError):
        context = fault.errors(include_url=False)[0].get("ctx", {})
        if isinstance(misfit := context.get("error"), Misfit):
            return BadInput(
                bad.what, where=f"{bad.where}{misfit.at}", next_command=bad.next_command
            )
    return bad
