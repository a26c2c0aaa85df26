"""DSSE envelopes with ed25519 keys, as OpenSSH and PKCS#8 files hold them."""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from pydantic import Field

from harness.errors import BadInput
from harness.strict import Model, load, read_plain
from trainer import contract

PAYLOAD_TYPE = "application/vnd.in-toto+json"
PASSPHRASE = "HARNESS_SIGN_PASSPHRASE"
MAKE_KEY = "ssh-keygen -t ed25519 -N '' -f study-key"
MAX_KEY_BYTES = 64 * 1024


class Signature(Model):
    """One signature of an envelope."""

    keyid: str
    sig: str


class Envelope(Model):
    """A DSSE envelope (github.com/secure-systems-lab/dsse, envelope.md). Base64 throughout."""

    payload: str
    payload_type: str = Field(alias="payloadType")
    signatures: tuple[Signature, ...]


@dataclass(frozen=True)
class Signer:
    """A private key. Never printed, never stored."""

    private: Ed25519PrivateKey

    @property
    def public_line(self) -> bytes:
        """The public key as one line of an OpenSSH .pub file."""
        return _line(self.private.public_key()) + b"\n"

    @property
    def fingerprint(self) -> str:
        """As `ssh-keygen -l` prints it."""
        return fingerprint(self.private.public_key())

    def sign(self, payload: bytes) -> bytes:
        """The envelope's JSON."""
        row = Signature(keyid=self.fingerprint, sig=_text(self.private.sign(_encoded(payload))))
        envelope = Envelope(
            payload=_text(payload), payloadType=PAYLOAD_TYPE, signatures=(row,)
        ).to_json()
        return contract.canonical(envelope) + b"\n"


def fingerprint(key: Ed25519PublicKey) -> str:
    """SHA256:... of a public key, as `ssh-keygen -l` prints it."""
    blob = base64.b64decode(_line(key).split()[1])
    return "SHA256:" + base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")


def check_envelope(data: bytes, payload: bytes, key: Ed25519PublicKey, *, where: str) -> None:
    """Raises BadInput unless the envelope carries `payload`, signed by `key`."""
    envelope = load(Envelope, data, where=where)
    if envelope.payload_type != PAYLOAD_TYPE or _bytes(envelope.payload, where) != payload:
        raise BadInput("is a signature of something else than this commitment", where=where)
    for row in envelope.signatures:
        try:
            key.verify(_bytes(row.sig, where), _encoded(payload))
        except InvalidSignature:
            continue
        return
    raise BadInput(f"is no signature by the key {fingerprint(key)}", where=where)


def load_signer(path: Path) -> Signer:
    """An ed25519 private key, OpenSSH or PEM. Raises BadInput.

    The passphrase of a protected key is read from HARNESS_SIGN_PASSPHRASE.
    """
    data, given = _read(path), os.environ.get(PASSPHRASE)
    password = given.encode() if given else None
    openssh = b"OPENSSH PRIVATE KEY" in data
    loader = serialization.load_ssh_private_key if openssh else serialization.load_pem_private_key
    try:
        key = loader(data, password)
    except TypeError:
        raise BadInput(
            f"is protected by a passphrase; put it in {PASSPHRASE}"
            if password is None
            else f"is not protected by a passphrase; unset {PASSPHRASE}",
            where=str(path),
        ) from None
    except (ValueError, UnsupportedAlgorithm):
        raise BadInput(
            "is no private key, or its passphrase is another", where=str(path),
            next_command=MAKE_KEY,
        ) from None  # fmt: skip
    if not isinstance(key, Ed25519PrivateKey):
        raise BadInput("is no ed25519 key", where=str(path), next_command=MAKE_KEY)
    return Signer(key)


def public_keys(data: bytes, *, where: str) -> tuple[Ed25519PublicKey, ...]:
    """ed25519 keys of OpenSSH lines (as github.com/USER.keys has them) or of one PEM file.

    Keys of other kinds are left out. Raises BadInput when none is left.
    """
    lines = [data] if b"-----BEGIN" in data else data.splitlines()
    found = [key for line in lines if (key := _public(line)) is not None]
    if not found:
        raise BadInput("holds no ed25519 public key", where=where, next_command=MAKE_KEY)
    return tuple(found)


def load_public_keys(path: Path) -> tuple[Ed25519PublicKey, ...]:
    """`public_keys` of a file."""
    return public_keys(_read(path), where=str(path))


def _public(line: bytes) -> Ed25519PublicKey | None:
    pem = b"-----BEGIN" in line
    try:
        key = (
            serialization.load_pem_public_key(line)
            if pem
            else serialization.load_ssh_public_key(line)
        )
    except (ValueError, UnsupportedAlgorithm):
        return None
    return key if isinstance(key, Ed25519PublicKey) else None


def _read(path: Path) -> bytes:
    try:
        return read_plain(path, limit=MAX_KEY_BYTES)
    except OSError as error:
        raise BadInput(
            f"cannot be read ({error.strerror})", where=str(path), next_command=MAKE_KEY
        ) from None


def _line(key: Ed25519PublicKey) -> bytes:
    return key.public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)


def _encoded(payload: bytes) -> bytes:
    """DSSE's pre-authentication encoding."""
    kind = PAYLOAD_TYPE.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _bytes(text: str, where: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise BadInput("is not base64", where=where) from None
