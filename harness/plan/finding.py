"""What `harness check` found: one fault of a plan that is well formed and still cannot be right."""

from __future__ import annotations

from typing import Literal

from harness.strict import Model


class Finding(Model):
    """One sentence about one place of the plan."""

    level: Literal["error", "warning"]
    """An error stops `prepare`; a warning is shown and may be meant."""
    pointer: str
    """JSON pointer (RFC 6901) into plan.json."""
    what: str
    """One sentence, without its period."""
    next_command: str = ""

    def sentence(self, where: str) -> str:
        """The finding as it is printed, with the file that it is in."""
        return f"{where}#{self.pointer}: {self.what}."


def error(pointer: str, what: str, *, next_command: str = "") -> Finding:
    """A fault that must be mended."""
    return Finding(level="error", pointer=pointer, what=what, next_command=next_command)


def warning(pointer: str, what: str) -> Finding:
    """Something that may be meant and often is not."""
    return Finding(level="warning", pointer=pointer, what=what)
