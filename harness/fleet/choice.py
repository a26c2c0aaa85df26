"""Which hosts a run uses, as the user said it: this computer, a hosts file or the stack's."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from harness.admission import FleetKind
from harness.errors import command


@dataclass(frozen=True)
class FleetChoice:
    """The kind of fleet, and the words on the command line that chose it."""

    kind: FleetKind
    hosts_file: Path | None = None
    """With 'hosts-file': the file as it was given."""
    fleet: str = ""
    """With 'stack': a living fleet to join; empty: the one of this plan."""
    keep_hosts: bool = False
    """With 'stack': hosts are not ended after preservation."""

    @property
    def words(self) -> tuple[str, ...]:
        """What chose this on the command line."""
        if self.kind == "local":
            return ("--local",)
        if self.kind == "hosts-file":
            return ("--hosts", str(self.hosts_file))
        return ("--fleet", self.fleet) if self.fleet else ()

    def command(self, plan: Path, *more: str) -> str:
        """The command that goes on with a run of `plan` on these hosts."""
        return command("run", plan, *self.words, *more)


LOCAL = FleetChoice("local")
