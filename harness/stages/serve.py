"""serve: the declared phases; a plan without any says 'not run'."""

from __future__ import annotations

from harness.errors import Refused, command
from harness.receipts import ServeReceipt
from harness.stages.stamp import Stamp
from harness.study import Receipts, Study


def serve(study: Study, done: Receipts, stamp: Stamp) -> ServeReceipt:
    """Nothing to do without declared phases. `run` refuses a plan with phases beforehand."""
    require_no_serving(study.plan.serving is not None, str(study.loaded.path))
    return ServeReceipt(**stamp.close(), ran=False, why="the plan declares no serving phases")


def require_no_serving(declared: bool, path: str) -> None:
    """Raises Refused for a plan that declares serving, before anything is started."""
    if declared:
        raise Refused(
            "the plan declares serving phases, which cannot be run yet",
            where=f"{path}#/serving",
            next_command=command("check", path),
        )
