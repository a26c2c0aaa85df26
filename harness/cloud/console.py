"""A host's console output: the public host keys that cloud-init prints there at first boot.

It reaches the operator past the network and past the bucket, so it is a second witness of what the
host published (EC2 API reference, GetConsoleOutput; cloud-init, `ssh: emit_keys_to_console`).
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Literal

from harness.cloud.clients import Aws, asking
from harness.errors import Refused
from harness.strict import Model

BEGIN, END = "-----BEGIN SSH HOST KEY KEYS-----", "-----END SSH HOST KEY KEYS-----"
_KEY = re.compile(r"(?<![\w-])((?:ssh|ecdsa)-[a-z0-9-]+) ([A-Za-z0-9+/]+={0,2})")


class Witness(Model):
    """What the console says of a host's published keys."""

    verdict: Literal["agrees", "differs", "absent"]
    said: str
    """A sentence part for a person, without the host's name."""


def witness(aws: Aws, instance_id: str, published: tuple[str, ...]) -> Witness:
    """Compare a host's published keys with its console, asked for now.

    What AWS refuses to show is 'absent'. Raises Waiting when AWS could not be asked.
    """
    try:
        with asking(f"for the console of {instance_id}", where=aws.region):
            answer = aws.ec2.get_console_output(InstanceId=instance_id, Latest=True)
    except Refused as refused:
        return Witness(verdict="absent", said=f"its console cannot be read: {refused.what}")
    return compare(published, console_keys(str(answer.get("Output") or "")))


def console_keys(text: str) -> dict[str, frozenset[str]]:
    """Key blobs by algorithm in the newest whole block; {} without one. Pure.

    Lines may have prefixes, and a kernel message may have cut into one: what is no whole key of
    its algorithm is left out.
    """
    begin = text.rfind(BEGIN, 0, max(text.rfind(END), 0))
    if begin < 0:
        return {}
    found: dict[str, set[str]] = {}
    for algorithm, blob in _KEY.findall(text[begin : text.index(END, begin)]):
        if _whole(algorithm, blob):
            found.setdefault(algorithm, set()).add(blob)
    return {algorithm: frozenset(blobs) for algorithm, blobs in found.items()}


def compare(published: tuple[str, ...], shown: dict[str, frozenset[str]]) -> Witness:
    """Every published key whose algorithm the console shows must be shown there. Pure."""
    keys = [tuple(key.split()[:2]) for key in published]
    both = [(algorithm, blob) for algorithm, blob in keys if algorithm in shown]
    for algorithm, blob in both:
        if blob not in shown[algorithm]:
            return Witness(verdict="differs", said=f"its console shows another {algorithm} key")
    if not both:
        return Witness(verdict="absent", said="its console shows none of its host keys (yet)")
    count = f"{len(both)} of {len(keys)} published host key(s)"
    return Witness(verdict="agrees", said=f"its console shows {count}, the same")


def _whole(algorithm: str, blob: str) -> bool:
    """RFC 4253, 6.6: length-prefixed fields to the last byte, the first one the algorithm."""
    try:
        data = base64.b64decode(blob, validate=True)
    except binascii.Error:
        return False
    fields: list[bytes] = []
    while len(data) >= 4:
        size = int.from_bytes(data[:4], "big")
        fields.append(data[4 : 4 + size])
        data = data[4 + size :] if len(data) >= 4 + size else b"\0"
    return not data and len(fields) > 1 and fields[0] == algorithm.encode()
