"""Real processes that are ranks of one group over gloo on 127.0.0.1.

They come from a fork server that has imported torch once, so a group starts in a fraction of a
second.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import tempfile
import traceback
from collections.abc import Callable
from datetime import timedelta
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

_LIMIT_S = 600
_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["tests.numerics.work"])


def run_ranks(work: Callable[..., Any], workers: int, *arguments: Any) -> list[Any]:
    """`work(rank, workers, *arguments)` in every rank's process; the results by rank.

    A rank that raises fails the test with its traceback.
    """
    with tempfile.TemporaryDirectory() as folder:
        store = str(Path(folder) / "store")
        return _run(work, workers, store, arguments)


def run_apart(work: Callable[..., Any], workers: int, *arguments: Any) -> list[Any]:
    """As `run_ranks`, for work that makes its own process group."""
    return _run(work, workers, None, arguments)


def run_alone(work: Callable[..., Any], *arguments: Any) -> Any:
    """`work(*arguments)` in a process of its own."""
    return _run(_without_rank, 1, None, (work, arguments))[0]


def _without_rank(
    rank: int, workers: int, work: Callable[..., Any], arguments: tuple[Any, ...]
) -> Any:
    return work(*arguments)


def _run(
    work: Callable[..., Any], workers: int, store: str | None, arguments: tuple[Any, ...]
) -> list[Any]:
    processes, ends = [], []
    for rank in range(workers):
        ours, theirs = _CONTEXT.Pipe(duplex=False)
        process = _CONTEXT.Process(
            target=_child, args=(theirs, store, work, rank, workers, arguments), daemon=True
        )
        process.start()
        theirs.close()
        processes.append(process)
        ends.append(ours)
    try:
        return [_result(end) for end in ends]
    finally:
        for process in processes:
            process.kill()
            process.join()


def _result(end: Connection) -> Any:
    if not wait([end], _LIMIT_S):
        raise TimeoutError("a rank gave no result")
    try:
        ok, value = pickle.loads(end.recv_bytes())
    except EOFError:
        raise AssertionError("a rank died") from None
    if not ok:
        raise AssertionError(f"a rank failed:\n{value}")
    return value


def _child(
    end: Connection,
    store: str | None,
    work: Callable[..., Any],
    rank: int,
    workers: int,
    arguments: tuple[Any, ...],
) -> None:
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    try:
        if store is not None:
            dist.init_process_group(
                "gloo",
                init_method=f"file://{store}",
                rank=rank,
                world_size=workers,
                timeout=timedelta(seconds=300),
            )
        end.send_bytes(pickle.dumps((True, work(rank, workers, *arguments))))
    except BaseException:
        end.send_bytes(pickle.dumps((False, traceback.format_exc())))
