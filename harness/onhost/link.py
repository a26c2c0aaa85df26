"""The link between two hosts, measured by one plain TCP connection.

`link serve --address A [--port P] [--seconds S]` prints {address, port} (P 0: any free port), waits
at most S seconds for one peer and serves it. `link measure --address A --port P [--bytes N]
[--seconds S]` prints {round_trip_s, bytes, seconds, bits_per_s, flows}; it sends at most N bytes
and for at most S seconds. One flow may be slower than the link.
"""

from __future__ import annotations

import socket
import statistics
import struct
import sys
import time
from typing import Any

from harness.onhost.command import Fault, parser, print_json, run_program

PINGS = 20
_PIECE = bytes(1 << 20)
_SILENCE_S = 10.0
"""A peer that says nothing for this long is dead."""


def serve(listener: socket.socket) -> int:
    """Serve one peer: echo pings, count what it sends, answer the count. Returns that count.

    Raises Fault when nobody comes within the listener's timeout or the peer falls silent.
    """
    try:
        link, _ = listener.accept()
        with link:
            link.settimeout(_SILENCE_S)
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for _ in range(PINGS):
                link.sendall(_exactly(link, 1))
            seen = 0
            while piece := link.recv(len(_PIECE)):
                seen += len(piece)
            link.sendall(struct.pack("<Q", seen))
            return seen
    except OSError as error:
        raise Fault(f"no peer measured the link ({error}).", exit_code=4) from None


def measure(address: str, port: int, *, limit_bytes: int, limit_s: float) -> dict[str, Any]:
    """Median round trip, then what the peer counted over the time until it answered.

    Raises Fault.
    """
    try:
        with socket.create_connection((address, port), timeout=_SILENCE_S) as link:
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            trips = [_ping(link) for _ in range(PINGS)]
            began, sent = time.monotonic(), 0
            while sent < limit_bytes and time.monotonic() - began < limit_s:
                piece = memoryview(_PIECE)[: limit_bytes - sent]
                link.sendall(piece)
                sent += len(piece)
            link.shutdown(socket.SHUT_WR)
            (seen,) = struct.unpack("<Q", _exactly(link, 8))
            seconds = time.monotonic() - began
    except OSError as error:
        raise Fault(f"the link to {address}:{port} cannot be measured ({error}).") from None
    if seen != sent:
        raise Fault(f"{address}:{port} received {seen} of {sent} bytes.")
    return {
        "round_trip_s": statistics.median(trips),
        "bytes": seen,
        "seconds": seconds,
        "bits_per_s": seen * 8 / seconds,
        "flows": 1,
    }


def _ping(link: socket.socket) -> float:
    began = time.monotonic()
    link.sendall(b"p")
    _exactly(link, 1)
    return time.monotonic() - began


def _exactly(link: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        piece = link.recv(count - len(data))
        if not piece:
            raise ConnectionError("the peer closed the connection")
        data += piece
    return data


def main() -> int:
    """The command line."""
    commands = parser(__doc__)
    commands.add_argument("verb", choices=("serve", "measure"))
    commands.add_argument("--address", required=True)
    commands.add_argument("--port", type=int, default=0)
    commands.add_argument("--bytes", type=int, default=1 << 28)
    commands.add_argument("--seconds", type=float, default=10.0)
    given = commands.parse_args()
    if given.verb == "measure":
        bounds = {"limit_bytes": given.bytes, "limit_s": given.seconds}
        print_json(measure(given.address, given.port, **bounds))
        return 0
    with socket.create_server((given.address, given.port)) as listener:
        listener.settimeout(given.seconds)
        print_json({"address": given.address, "port": listener.getsockname()[1]})
        sys.stdout.flush()  # whoever follows the log needs the port before the peer comes
        serve(listener)
    return 0


if __name__ == "__main__":
    run_program(main)
