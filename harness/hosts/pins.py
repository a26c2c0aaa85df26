"""Host keys that are pinned before the first connection. Nothing is ever accepted on sight."""

from __future__ import annotations

import base64
import binascii
import hashlib
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.errors import BadInput, Refused

if TYPE_CHECKING:
    import paramiko


def parse_key(text: str, *, where: str) -> paramiko.PKey:
    """The key of one line such as 'ssh-ed25519 AAAA...'. Raises BadInput."""
    import paramiko

    words = text.split()
    try:
        data = base64.b64decode(words[1], validate=True)
        return paramiko.PKey.from_type_string(words[0], data)
    except (IndexError, binascii.Error, paramiko.SSHException, ValueError, KeyError):
        raise BadInput("is no public host key such as 'ssh-ed25519 AAAA...'", where=where) from None


def fingerprint(key: paramiko.PKey) -> str:
    """'SHA256:...' as ssh-keygen -l prints it."""
    digest = base64.b64encode(hashlib.sha256(key.asbytes()).digest()).decode().rstrip("=")
    return f"SHA256:{digest}"


def pin(
    client: paramiko.SSHClient, address: str, port: int, keys: Sequence[str], where: str
) -> None:
    """Make a client know these keys of the host and refuse every other one."""
    import paramiko

    client.set_missing_host_key_policy(paramiko.RejectPolicy())
    name = address if port == 22 else f"[{address}]:{port}"
    known = client.get_host_keys()
    for text in keys:
        key = parse_key(text, where=f"{where}: host key")
        known.add(name, key.get_name(), key)


def missing(name: str, address: str, port: int) -> Refused:
    """No key is pinned: how to get one, and how to know that it is the machine's own."""
    return Refused(
        "no host key is pinned, and none is accepted on sight; put the line that the machine's "
        "own console shows for 'cat /etc/ssh/ssh_host_ed25519_key.pub' into 'host_key' "
        "(what the network shows must have the same fingerprint: ssh-keygen -lf FILE)",
        where=f"{name} ({address}:{port})",
        next_command=scan_command(address, port),
    )


def changed(name: str, address: str, port: int, shown: str, pinned: Sequence[str]) -> Refused:
    """The machine shows another key."""
    return Refused(
        f"the machine shows another host key ({shown}) than the pinned one "
        f"({', '.join(pinned)}); it was made anew, or someone stands between: compare with "
        "'ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub' on the machine's own console",
        where=f"{name} ({address}:{port})",
        next_command=scan_command(address, port),
    )


def scan_command(address: str, port: int) -> str:
    """What shows the keys that the network shows."""
    return shlex.join(["ssh-keyscan", "-t", "ed25519", "-p", str(port), address])
