"""The plain Pulumi commands on the real engine, over a program of this process."""

from __future__ import annotations

import concurrent.futures
import contextlib
import json
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
from pulumi.automation._server import LanguageServer
from pulumi.runtime.proto import language_pb2_grpc

from harness.fleet import engine as command
from harness.fleet.outputs import OUTPUT, StackOutputs

ROOT = Path(__file__).parents[2]
Program = Callable[[], None]
STACK = "fleet"


@dataclass(frozen=True)
class Ran:
    """What a command said, streams together, colours off."""

    code: int
    text: str

    def ok(self) -> Ran:
        """Itself. Raises AssertionError, with all that was said, when the command failed."""
        assert self.code == 0, self.text
        return self


class Engine:
    """A project folder like the repository's, with a stack of its own in a local backend."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self.folder = folder
        (folder / "state").mkdir(parents=True)
        (folder / "Pulumi.yaml").write_bytes((ROOT / "Pulumi.yaml").read_bytes())
        (folder / "infra").symlink_to(ROOT / "infra")
        self.environment = {
            **os.environ,
            **environment,
            "PULUMI_HOME": str(folder / "home"),
            "PULUMI_BACKEND_URL": f"file://{folder}/state",
            "PULUMI_CONFIG_PASSPHRASE": "for tests",
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
            "NO_COLOR": "1",
        }
        self.pulumi = command.find(ROOT)
        self.run("stack", "init", STACK).ok()

    def run(self, *arguments: str, program: Program | None = None, timeout_s: float = 300) -> Ran:
        """`pulumi ARGUMENTS`; with a program, in place of the one that a language host runs."""
        with contextlib.ExitStack() as held:
            extra = [f"--client={held.enter_context(served(program))}"] if program else []
            done = subprocess.run(
                [self.pulumi, *arguments, *extra, "--non-interactive", "--color=never"],
                cwd=self.folder,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=timeout_s,
                check=False,
            )
        return Ran(done.returncode, done.stdout)

    def up(self, program: Program, *more: str) -> Ran:
        """`pulumi up`, said yes to."""
        return self.run("up", "--yes", "--skip-preview", *more, program=program)

    def preview(self, program: Program, *more: str) -> Ran:
        """`pulumi preview`."""
        return self.run("preview", "--diff", *more, program=program)

    def destroy(self, *more: str, program: Program | None = None) -> Ran:
        """`pulumi destroy`, said yes to."""
        return self.run("destroy", "--yes", "--skip-preview", *more, program=program)

    def output(self, name: str) -> str:
        """One stack output."""
        said = self.run("stack", "output", name, "--show-secrets=false").ok()
        return said.text.strip()

    def state(self) -> list[dict[str, Any]]:
        """The resources that the engine knows."""
        said = json.loads(self.run("stack", "export").ok().text)
        return list(said["deployment"].get("resources") or [])

    def kinds(self) -> set[str]:
        """Their types."""
        return {str(each["type"]) for each in self.state()}


def outputs(engine: Engine) -> StackOutputs:
    """The stack's one output."""
    return StackOutputs.model_validate_json(engine.output(OUTPUT))


@contextlib.contextmanager
def served(program: Program) -> Iterator[str]:
    """Address of a language server that runs `program`."""
    server = grpc.server(
        concurrent.futures.ThreadPoolExecutor(max_workers=4),
        options=[("grpc.max_receive_message_length", 400 * 1024 * 1024)],
    )
    language_pb2_grpc.add_LanguageRuntimeServicer_to_server(LanguageServer(program), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.stop(grace=None).wait()
