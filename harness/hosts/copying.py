"""Files between here and a machine: whole, compared by hash, and none that is there already.

A hash that was taken earlier and kept beside the file is no evidence of what the file is now, so
both sides read what they have, at the same time; only that it is absent is believed at once.
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from harness.errors import Waiting
from harness.hosts import openssh
from harness.hosts.link import Ended, Link
from harness.hosts.protocol import Completed
from harness.onhost import trees
from harness.onhost.command import Fault
from trainer import contract

SMALL_BYTES = 1 << 20
READ_BYTES = 4 << 20
TRANSFER_S = 6 * 3600.0


@dataclass(frozen=True)
class Copier:
    """Copies for one host; every path on it is absolute."""

    name: str
    link: Link
    script: Callable[[Sequence[str], float], str]
    """The remote line of a program of the helper, with its limit in seconds."""
    helper: Callable[..., Completed]
    """`Host.helper`."""

    def send(self, local: Path, target: str) -> int:
        """Copy a file or folder there, atomically. Returns the bytes that were sent; 0 when the
        same was there already. Raises Waiting."""
        if local.is_file() and local.stat().st_size <= SMALL_BYTES:
            data = local.read_bytes()
            self.write(target, data, executable=bool(local.stat().st_mode & 0o100))
            return len(data)
        if not local.exists():
            raise Waiting("is not there to be sent", where=str(local))
        try:
            return 0 if self._has(target, local) else self._send(local, target)
        except Fault as fault:
            raise Waiting(str(fault).rstrip("."), where=self.name) from None

    def _send(self, local: Path, target: str) -> int:
        size = trees.size_of(local)
        ended = openssh.transfer(
            self.link, self._trees("receive", target), size, limit_s=TRANSFER_S,
            feed=lambda write: trees.pack(local, write),
        )  # fmt: skip
        require(ended, f"copying {local.name}", self.name)
        return size

    def _has(self, target: str, local: Path) -> bool:
        """Whether the same content is there. Nothing is hashed when nothing is there: what is
        sent carries its own hash, and is checked by it on arrival."""
        if self.link.ask({"ask": "look", "path": target})[0]["kind"] == "absent":
            return False
        with ThreadPoolExecutor(1) as pool:
            here = pool.submit(trees.hash_of, local)
            there = contract.parse(
                self.helper("trees", "hash", target, timeout_s=TRANSFER_S).stdout
            )
        found = here.result()
        return found is not None and there.get("sha256") == found[0]

    def get(self, target: str, local: Path) -> None:
        """Copy a file or folder from there, atomically. Raises Waiting when it is absent."""
        seen, _ = self.link.ask({"ask": "look", "path": target})
        if seen["kind"] == "absent":
            raise Waiting(f"copying {target} failed (No such file or directory)", where=self.name)
        local.parent.mkdir(parents=True, exist_ok=True)
        if "sha256" in seen:
            self._get_small(target, int(seen["size"]), str(seen["sha256"]), local)
            return
        packed = local.with_name(f".{local.name}.{secrets.token_hex(6)}.packed.tmp")
        try:
            with open(packed, "wb") as out:
                ended = openssh.transfer(
                    self.link, self._trees("send", target), int(seen["size"]),
                    limit_s=TRANSFER_S, into=out,
                )  # fmt: skip
            require(ended, f"copying {target}", self.name)
            if local.is_dir():
                shutil.rmtree(local)
            with open(packed, "rb") as source:
                trees.unpack(source.read, local)
        except Fault as fault:
            raise Waiting(str(fault).rstrip("."), where=self.name) from None
        finally:
            packed.unlink(missing_ok=True)

    def _get_small(self, target: str, size: int, sha256: str, local: Path) -> None:
        """A file of a few megabytes, in pieces over the channel that is open anyway."""
        part = local.with_name(f".{local.name}.{secrets.token_hex(6)}.tmp")
        try:
            with open(part, "wb") as out:
                while (have := out.tell()) < size:
                    piece = self.read(target, offset=have, limit=min(READ_BYTES, size - have))
                    if not piece:
                        break
                    out.write(piece)
            if contract.hash_file(part)[0] != sha256:
                raise Waiting(f"{target} changed while it was copied", where=self.name)
            part.replace(local)
        finally:
            part.unlink(missing_ok=True)

    def read(self, path: str, *, offset: int, limit: int, patient: bool = True) -> bytes:
        """Bytes of a file from an offset; b'' when there is nothing."""
        asked = {"ask": "read", "path": path, "offset": offset, "limit": limit}
        return self.link.ask(asked, patience_s=None if patient else 0)[1]

    def write(self, path: str, data: bytes, *, executable: bool = False) -> None:
        """A small file, atomically."""
        mode = "755" if executable else "644"
        asked = {"ask": "write", "path": path, "bytes": len(data), "mode": mode}
        self.link.ask(asked, data)

    def _trees(self, verb: str, target: str) -> str:
        return self.script(["-m", "harness.onhost.trees", verb, target], TRANSFER_S)


def require(ended: Ended, what: str, name: str) -> None:
    """Raises Waiting with the last words of what failed on the host `name`."""
    if ended.code != 0:
        last = (ended.err or ended.out).strip().splitlines()[-1:] or ["no output"]
        raise Waiting(f"'{what}' ended with status {ended.code}: {last[0]}", where=name)
