"""Two network namespaces with a link each to here and one to each other, which can be cut."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, stdin=subprocess.DEVNULL)


NUMBERS = count()


@dataclass(frozen=True)
class Net:
    """Namespaces of the hosts 0 and 1. Names are this object's own, addresses this process's."""

    tag: str = field(default_factory=lambda: f"{os.getpid():x}{next(NUMBERS):x}")
    block: str = f"10.{200 + os.getpid() % 50}"

    def space(self, slot: int) -> str:
        return f"hn{self.tag}{slot}"

    def wrap(self, slot: int) -> list[str]:
        """What a program is started with to run on that host."""
        return ["ip", "netns", "exec", self.space(slot)]

    def address(self, slot: int) -> str:
        """Where the host is reached from here."""
        return f"{self.block}.{slot}.2"

    def private(self, slot: int) -> str:
        """Where the other host reaches it."""
        return f"{self.block}.9.{slot + 1}"

    def up(self) -> None:
        for slot in (0, 1):
            ip("netns", "add", self.space(slot))
            ip("-n", self.space(slot), "link", "set", "lo", "up")
            ip("link", "add", f"ho{self.tag}{slot}", "type", "veth", "peer", "name", "manage",
               "netns", self.space(slot))  # fmt: skip
            self._address(slot, "manage", f"{self.address(slot)}/24")
            ip("addr", "add", f"{self.block}.{slot}.1/24", "dev", f"ho{self.tag}{slot}")
            ip("link", "set", f"ho{self.tag}{slot}", "up")
        ip("-n", self.space(0), "link", "add", "train", "type", "veth", "peer", "name", "train",
           "netns", self.space(1))  # fmt: skip
        for slot in (0, 1):
            self._address(slot, "train", f"{self.private(slot)}/24")

    def _address(self, slot: int, link: str, address: str) -> None:
        ip("-n", self.space(slot), "addr", "add", address, "dev", link)
        ip("-n", self.space(slot), "link", "set", link, "up")

    def sent_to(self, slot: int) -> int:
        """Bytes that went from here to a host: its link carries nothing else."""
        return int(Path(f"/sys/class/net/ho{self.tag}{slot}/statistics/tx_bytes").read_text())

    def cut(self, slot: int, *, back: bool = False) -> None:
        """Take both links of a host down, or bring them up again."""
        for link in ("manage", "train"):
            ip("-n", self.space(slot), "link", "set", link, "up" if back else "down")

    def down(self) -> None:
        """Links go first: a namespace lives on, with its links, as long as a process is in it."""
        for slot in (0, 1):
            for kind, name in (("link", f"ho{self.tag}{slot}"), ("netns", self.space(slot))):
                subprocess.run(["ip", kind, "del", name], capture_output=True, check=False)
