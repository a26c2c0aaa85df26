"""Whole-host byte counters of one network interface, management traffic included."""

from __future__ import annotations

from dataclasses import dataclass

from trainer.errors import RecipeError


@dataclass(frozen=True)
class Counters:
    """Bytes since the interface came up."""

    sent_bytes: int
    received_bytes: int

    @classmethod
    def read(cls, interface: str, table: str = "/proc/net/dev") -> Counters:
        """The counters now. Raises RecipeError when the interface is not in the table.

        proc(5): after the name come eight fields of reception and eight of transmission, each
        beginning with bytes.
        """
        with open(table, encoding="ascii") as handle:
            lines = handle.readlines()
        for line in lines:
            name, _, numbers = line.partition(":")
            if name.strip() == interface and numbers:
                fields = numbers.split()
                return cls(sent_bytes=int(fields[8]), received_bytes=int(fields[0]))
        raise RecipeError(f"there is no interface {interface} on this machine")

    def since(self, earlier: Counters) -> Counters:
        """What was counted after `earlier`."""
        return Counters(
            self.sent_bytes - earlier.sent_bytes, self.received_bytes - earlier.received_bytes
        )
