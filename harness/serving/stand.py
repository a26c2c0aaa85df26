"""What the phases of one study share, and where a phase's files are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.fleet.protocol import FleetSource
from harness.hosts.protocol import Host
from harness.plan.serving import Phase, Serving
from harness.receipts import Incomplete, PushedHost
from harness.serving.order import Order, Replica, order_json, order_of
from harness.strict import load_file
from harness.study import Study
from trainer import contract

CLIENT_SESSIONS = 3
"""A client that is ended is started again; it goes on with what has no end."""


@dataclass(frozen=True)
class Stand:
    """What all phases of a study share."""

    study: Study
    fleet: FleetSource
    hosts: tuple[Host, ...]
    pushed: tuple[PushedHost, ...]
    recipe: Callable[[int], dict[str, Any]]
    """A replica's recipe when that many share the machine."""
    model: str
    """Folder of the candidate in each host's work folder."""
    cases: Sequence[tuple[str, Sequence[int]]]
    """(id, prompt) of the development cases."""
    leave: Callable[[], Incomplete | None]
    """Why serving must not go on; asked all along."""

    @property
    def serving(self) -> Serving:
        """The plan's serving section."""
        serving = self.study.plan.serving
        assert serving is not None
        return serving

    def folder(self, phase: Phase) -> Path:
        """What is gathered of a phase, on this side; made."""
        path = self.study.work / "serving" / phase.name
        path.mkdir(parents=True, exist_ok=True)
        return path

    def order(self, phase: Phase, found: Sequence[Replica]) -> Order:
        """What the phase's client is told, written to the phase's folder."""
        order = order_of(
            self.serving, phase, self.cases, found, run=self.study.run, seed=self.study.plan.seed
        )
        contract.write_json(self.folder(phase) / "order.json", order_json(order))
        return order

    def known_order(self, phase: Phase) -> Order:
        """The order as it was given, also before this process; one without replicas where none was
        given yet."""
        path = self.folder(phase) / "order.json"
        return load_file(Order, path) if path.exists() else self.order(phase, ())


def client_out(phase: Phase) -> str:
    """Folder of the client's record, in the first host's work folder."""
    return f"out/serve.{phase.name}.client"


def client_job(phase: Phase, session: int) -> str:
    """Id of one session's job."""
    return f"serve.{phase.name}.client.{session}"
