"""Notices at once that a peer's process is gone.

NCCL may wait for minutes on a rank that was killed. Here every rank holds one connection to rank
0; the kernel closes it when a process ends, however it ends. A rank that is done says goodbye
first. Whoever loses a peer without that leaves itself, so the loss reaches all ranks.
"""

from __future__ import annotations

import os
import selectors
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
import torch.distributed as dist

_GOODBYE = b"."
_CONNECT_S = 60.0
_KEEPALIVE = (("TCP_KEEPIDLE", 10), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3))
"""A host that vanishes without closing anything is noticed after about 25 s."""


def leave(peer: str) -> None:
    """End this process: its main thread may be stuck in a collective that will never finish."""
    print(f"trainer: lost {peer} before the job was done", file=sys.stderr, flush=True)
    os._exit(1)


@contextmanager
def watched(
    rank: int,
    workers: int,
    address: str,
    device: torch.device,
    lost: Callable[[str], None] = leave,
) -> Iterator[None]:
    """While inside, call `lost` when a peer's process ends. The process group must stand.

    `address` is rank 0's. Left by an exception, no goodbye is said: the peers must leave too.
    """
    connections = _host(workers, address, device) if rank == 0 else _join(address, device)
    for connection in connections:
        _keep_alive(connection)
    name = "a peer" if rank == 0 else "rank 0"
    thread = threading.Thread(target=_watch, args=(list(connections), name, lost), daemon=True)
    thread.start()
    yield
    for connection in connections:
        connection.sendall(_GOODBYE)
    thread.join()
    for connection in connections:
        connection.close()


def _host(workers: int, address: str, device: torch.device) -> list[socket.socket]:
    """Rank 0: tell the others a port, and take their connections."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.create_server((address, 0), family=family, backlog=workers) as server:
        server.settimeout(_CONNECT_S)
        _agree(server.getsockname()[1], device)
        return [server.accept()[0] for _ in range(workers - 1)]


def _join(address: str, device: torch.device) -> list[socket.socket]:
    """Another rank: connect to the port that rank 0 tells."""
    return [socket.create_connection((address, _agree(0, device)), timeout=_CONNECT_S)]


def _agree(port: int, device: torch.device) -> int:
    """Rank 0's port, on every rank."""
    told = torch.tensor([port], dtype=torch.int64, device=device)
    dist.broadcast(told, src=0)
    return int(told.item())


def _keep_alive(connection: socket.socket) -> None:
    connection.settimeout(None)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE:
        if hasattr(socket, name):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _watch(connections: list[socket.socket], name: str, lost: Callable[[str], None]) -> None:
    """Until all peers have said goodbye."""
    with selectors.DefaultSelector() as selector:
        for connection in connections:
            selector.register(connection, selectors.EVENT_READ)
        while selector.get_map():
            for key, _ in selector.select():
                if not (isinstance(key.fileobj, socket.socket) and _said_goodbye(key.fileobj)):
                    lost(name)
                selector.unregister(key.fileobj)


def _said_goodbye(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == _GOODBYE
    except OSError:
        return False
