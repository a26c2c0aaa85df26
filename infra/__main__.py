"""`pulumi up` runs this: configuration in, program, nothing else."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# The engine runs this folder as a script: its files are the package `infra`, not modules of no one.
sys.path[:] = [str(ROOT), *(path for path in sys.path if path != str(ROOT / "infra"))]


def main() -> None:
    """Stand up the fleet of the stack's configuration. Raises pulumi.RunError."""
    import pulumi

    from harness.errors import HarnessError
    from harness.fleet.admitted import AdmittedFleet
    from harness.fleet.wiring import plain_wiring
    from harness.strict import load
    from infra.program import stand_up

    text = pulumi.Config("harness").get("admitted")
    if text is None:
        raise pulumi.RunError(
            "No fleet is admitted, so nothing is launched. Next: harness admit plan.json"
        )
    try:
        admitted = load(AdmittedFleet, text.encode(), where="harness:admitted")
        wiring = plain_wiring(admitted)
    except HarnessError as error:
        raise pulumi.RunError(str(error)) from None
    stand_up(wiring)


main()
