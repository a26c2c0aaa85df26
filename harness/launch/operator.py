"""The operator's address, which alone may open SSH connections, and the fleet's login key."""

from __future__ import annotations

import ipaddress
import os
import urllib.request
from pathlib import Path

from harness.errors import BadInput, Waiting

CHECKIP = "https://checkip.amazonaws.com"
"""Answers with the caller's public IPv4 address (AWS's own service)."""
WIDEST = 24
"""The widest network that is admitted: an office, not the internet."""


def operator_cidr(given: str, *, checkip: str = CHECKIP) -> str:
    """'A.B.C.D/N' from an address, a network, or 'auto' (asked from `checkip`).

    Raises BadInput when it is no IPv4 address or network of at most 256 addresses, Waiting when
    nobody answers.
    """
    text = _asked(checkip) if given == "auto" else given
    try:
        network = ipaddress.IPv4Network(text)
    except ValueError:
        raise BadInput(
            f"'{text[:60]}' is not an IPv4 address or network such as 198.51.100.7/32",
            where="--address",
            next_command="harness admit plan.json --address A.B.C.D/32",
        ) from None
    if network.prefixlen < WIDEST:
        raise BadInput(
            f"{network} is {network.num_addresses} addresses; SSH is admitted from at most 256",
            where="--address",
            next_command="harness admit plan.json --address auto",
        )
    return str(network)


def _asked(checkip: str) -> str:
    try:
        with urllib.request.urlopen(checkip, timeout=10) as answer:
            return str(answer.read(200).decode("ascii", "replace").strip())
    except OSError as error:
        raise Waiting(
            f"the address of this computer could not be asked ({error})",
            where=checkip,
            next_command="harness admit plan.json --address A.B.C.D/32",
        ) from None


def make_login_key(path: Path, comment: str) -> str:
    """Make an Ed25519 key pair for one fleet, or keep the one that is there.

    The private part is written once to `path` with mode 0600 (OpenSSH's format). Returns the
    public line.
    """
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    if path.exists():
        key = form.load_ssh_private_key(path.read_bytes(), password=None)
    else:
        key = Ed25519PrivateKey.generate()
        private = key.private_bytes(
            form.Encoding.PEM, form.PrivateFormat.OpenSSH, form.NoEncryption()
        )
        temporary = path.with_name(f".{path.name}.tmp")
        temporary.unlink(missing_ok=True)
        number = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(number, "wb") as handle:
            handle.write(private)
            handle.flush()
            os.fsync(handle.fileno())
        os.replace(temporary, path)
    public = key.public_key().public_bytes(form.Encoding.OpenSSH, form.PublicFormat.OpenSSH)
    return f"{public.decode()} {comment}"
