"""The Pulumi engine, driven by the Automation API with the same program as plain `pulumi up`."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.errors import Refused, Waiting
from harness.fleet import engine as found
from harness.fleet.outputs import OUTPUT, StackOutputs
from harness.launch.stack_file import PROJECT
from harness.onhost import processes
from harness.strict import load

if TYPE_CHECKING:
    from pulumi.automation import Stack

MARK = "HARNESS_ENGINE"
"""In the environment of every engine process of ours: the fleet that it works for."""
GRACE_S = 60.0
"""How long an engine may finish the operation that it is in."""
HOST = "aws:ec2/instance:Instance"


class EngineFailed(Exception):
    """An engine command failed; its text is all that it said."""


class Engine:
    """One stack. `program` is run by the engine in this process for `up` and `destroy`."""

    def __init__(self, project: Path, stack: str, fleet: str, program: Callable[[], None]) -> None:
        self.project = project
        self._name = stack
        self._fleet = fleet
        self._program = program
        self._stack: Stack | None = None

    @property
    def stack(self) -> Stack:
        """The stack, selected or made. Raises Refused without a fit engine."""
        if self._stack is None:
            from pulumi import automation

            command = _command(found.find(_checkout()))
            self._stack = _asked(
                lambda: automation.create_or_select_stack(
                    self._name,
                    project_name=PROJECT,
                    program=self._program,
                    opts=automation.LocalWorkspaceOptions(
                        work_dir=str(self.project),
                        program=self._program,
                        pulumi_command=command,
                        env_vars={
                            "PULUMI_CONFIG_PASSPHRASE": os.environ.get(
                                "PULUMI_CONFIG_PASSPHRASE", ""
                            ),
                            "PULUMI_SKIP_UPDATE_CHECK": "true",
                            MARK: self._fleet,
                        },
                    ),
                )
            )
        return self._stack

    def up(self, say: Callable[[str], None]) -> StackOutputs:
        """Stand everything up. Raises EngineFailed with what the engine said."""
        self._run(lambda: self.stack.up(on_output=say, color="never", suppress_progress=True))
        outputs = self.outputs()
        if outputs is None:
            raise EngineFailed("the engine ended without an output")
        return outputs

    def destroy(self, say: Callable[[str], None]) -> None:
        """Remove everything, running the program, so that its gate is asked. Raises EngineFailed.

        Protection in the state is lifted first: it follows the gate, which the caller has checked.
        """
        self.unprotect()
        self._run(
            lambda: self.stack.destroy(
                on_output=say, color="never", suppress_progress=True, refresh=True, run_program=True
            )
        )

    def unprotect(self) -> None:
        """Lift `protect` from everything in the state."""
        if self.resources():
            self._run(
                lambda: self.stack._run_pulumi_cmd_sync(["state", "unprotect", "--all", "--yes"])
            )

    def outputs(self) -> StackOutputs | None:
        """The stack's one output, validated; null when there is none."""
        value = self._run(self.stack.outputs).get(OUTPUT)
        if value is None:
            return None
        return load(StackOutputs, str(value.value).encode(), where=f"output {OUTPUT}")

    def resources(self) -> list[dict[str, Any]]:
        """What the engine's state holds."""
        return list((self._deployment() or {}).get("resources") or [])

    def pending(self) -> bool:
        """Whether an engine died while it made, changed or removed something."""
        return bool((self._deployment() or {}).get("pending_operations"))

    def hosts(self) -> tuple[str, ...]:
        """Ids of the instances in the state."""
        return tuple(str(each["id"]) for each in self.resources() if each["type"] == HOST)

    def settle(self) -> None:
        """End what an earlier command left running and lift its lock. Raises Waiting."""
        left = processes.end(self._children, grace_s=GRACE_S)
        if left:
            raise Waiting(f"the engine process {left[0].pid} cannot be ended", where=self._name)
        from pulumi.automation import CommandError

        try:
            self.stack.cancel()
        except CommandError:
            return  # nothing holds it

    def interrupt(self) -> None:
        """Ask the running engine to end after the operation that it is in, and wait for it."""
        processes.send(self._children(), signal.SIGINT)
        processes.end(self._children, grace_s=GRACE_S)

    def forget_pending(self) -> None:
        """Drop what the state says was being made. What was made is found by its tags."""
        self._run(
            lambda: self.stack.refresh(
                clear_pending_creates=True, color="never", suppress_progress=True
            )
        )

    def _deployment(self) -> dict[str, Any] | None:
        found: dict[str, Any] | None = self._run(self.stack.export_stack).deployment
        return found

    def _children(self) -> list[processes.Process]:
        own = os.getpid()
        return [
            process
            for process in processes.everything()
            if process.pid != own
            and process.state != "Z"
            and processes.environment_of(process.pid).get(MARK) == self._fleet
        ]

    def _run(self, act: Callable[[], Any]) -> Any:
        from pulumi.automation import CommandError

        try:
            return self._beside(act)
        except CommandError as error:
            raise EngineFailed(str(error)) from None

    def _beside(self, act: Callable[[], Any]) -> Any:
        """Run it in a thread, so that a signal reaches this one: the library waits for the engine
        to end, and nobody would ask it to."""
        with ThreadPoolExecutor(max_workers=1) as pool:
            future = pool.submit(act)
            try:
                while not wait([future], timeout=0.5).done:
                    pass
            except KeyboardInterrupt:
                self.interrupt()
                raise
            return future.result()


def _asked(act: Callable[[], Any]) -> Any:
    from pulumi.automation import CommandError

    try:
        return act()
    except CommandError as error:
        said = " ".join(str(error).split())[-300:]
        nowhere = "PULUMI_ACCESS_TOKEN" in said
        raise Refused(
            f"the stack cannot be opened ({said})",
            next_command="pulumi login --local" if nowhere else "pulumi stack ls",
        ) from None


def _command(path: Path) -> Any:
    from pulumi.automation import PulumiCommand
    from semver import VersionInfo

    class Found(PulumiCommand):
        """The command that was found; it is at least of this version."""

        def __init__(self) -> None:
            self.command = str(path)
            self.version = VersionInfo(*found.OLDEST)

    return Found()


def _checkout() -> Path:
    return Path(__file__).parents[2]


def is_there() -> bool:
    """Whether there is an engine to drive."""
    try:
        found.find(_checkout())
    except (Refused, OSError, subprocess.SubprocessError):
        return False
    return True
