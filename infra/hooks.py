"""What happens around the launch of a host: intent, outcome, and the end of a failed placement."""

from __future__ import annotations

from collections.abc import Callable

import pulumi

from infra.wiring import Wiring


class HostHooks:
    """Hooks of one program run. A failed launch ends the placement once, by tag."""

    on_error: pulumi.ErrorHook

    def __init__(self, wiring: Wiring, released: bool) -> None:
        self._wiring = wiring
        self._released = released
        self._launching = False
        self._ended = False
        self.on_error = pulumi.ErrorHook("end-placement", self._failed)

    def of_host(self, slot: int) -> pulumi.ResourceHookBinding:
        """The hooks of one slot's instance."""
        return pulumi.ResourceHookBinding(
            before_create=[pulumi.ResourceHook(f"intent-{slot}", self._intent(slot))],
            after_create=[pulumi.ResourceHook(f"outcome-{slot}", self._outcome(slot))],
            on_error=[self.on_error],
        )

    def _intent(self, slot: int) -> Callable[[pulumi.ResourceHookArgs], None]:
        def hook(_: pulumi.ResourceHookArgs) -> None:
            if self._released:
                raise RuntimeError(
                    f"fleet {self._wiring.admitted.fleet} is preserved and ended, so no host of it "
                    "is launched again; type `pulumi destroy` to remove the rest"
                )
            self._or_end(lambda: self._wiring.before_host(slot))
            self._launching = True

        return hook

    def _outcome(self, slot: int) -> Callable[[pulumi.ResourceHookArgs], None]:
        def hook(args: pulumi.ResourceHookArgs) -> None:
            self._or_end(lambda: self._wiring.after_host(slot, args.id))

        return hook

    def _or_end(self, act: Callable[[], None]) -> None:
        """What the engine's own error hook does not see: a hook of ours that fails."""
        try:
            act()
        except Exception as error:
            self._end(str(error))
            raise

    def _failed(self, args: pulumi.ErrorHookArgs) -> bool:
        """Only for what is being created: a change of a fleet that stands never ends it."""
        if args.failed_operation == "create":
            self._end(f"{args.name}: {args.errors[0] if args.errors else 'not created'}")
        return False

    def _end(self, why: str) -> None:
        """Not when this run launched nothing: what stands then is a fleet, not an attempt."""
        if self._launching and not self._ended:
            self._ended = True
            self._wiring.on_failure(why)
