"""What holds a fleet together while its evidence is not preserved.

Two values in the engine's own state. The *seal*, before everything, is what was admitted; the
*gate*, after everything, exists once the fleet is complete. The gate is replaced whenever the seal
or a host would be; while armed it is protected and its delete hook raises, so the engine stops
before it touches anything, whether for `destroy` or for a changed plan or configuration. Released,
neither protection nor hook is there, and plain `pulumi destroy` works.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pulumi

from harness.fleet.admitted import AdmittedFleet

CHANGEABLE = ("operator_cidr",)
"""What a standing fleet's configuration may change: a roaming operator's address."""


def sealed(admitted: AdmittedFleet) -> dict[str, Any]:
    """What may not change while the gate is armed."""
    return {name: value for name, value in admitted.to_json().items() if name not in CHANGEABLE}


def seal(admitted: AdmittedFleet) -> pulumi.Stash:
    """The first resource; everything else depends on it."""
    return pulumi.Stash(
        "admitted",
        input=sealed(admitted),
        opts=pulumi.ResourceOptions(replace_on_changes=["input"], delete_before_replace=True),
    )


def gate(
    *,
    admitted: AdmittedFleet,
    sealed_by: pulumi.Stash,
    instance_ids: Sequence[pulumi.Output[str]],
    after: Sequence[pulumi.Resource],
    preserved: Callable[[], bool],
    released: bool,
) -> pulumi.Stash:
    """The last resource; released, one of the first and without hosts, so that it lets go before a
    host that is gone stops the program.

    Its delete hook is registered also when it is not bound, so that `destroy --run-program` of a
    state that still binds it asks the live store.
    """

    def refuse(_: pulumi.ResourceHookArgs) -> None:
        if not preserved():
            raise RuntimeError(
                f"the evidence of fleet {admitted.fleet} is not proved preserved, so its hosts "
                f"stay; type `harness run {admitted.plan_path}` to go on, or "
                "`harness down --abandon WHY` to give the evidence up"
            )

    hook = pulumi.ResourceHook("preservation-gate", refuse)
    armed = pulumi.ResourceHookBinding(before_delete=[hook])
    return pulumi.Stash(
        "preservation-gate",
        input={"fleet": admitted.fleet, "admitted": sealed_by.input, "hosts": [*instance_ids]},
        opts=pulumi.ResourceOptions(
            depends_on=[*after],
            hooks=None if released else armed,
            protect=not released,
            replace_on_changes=None if released else ["input"],
            delete_before_replace=True,
        ),
    )
