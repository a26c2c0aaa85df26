"""The task `serve`: one replica that answers over HTTP until it is told to stop."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import threading
from typing import Any

import torch
import uvicorn

from trainer import model
from trainer.contract import read_json, write_json
from trainer.errors import TrainerError
from trainer.heartbeat import Heartbeat
from trainer.job import Job
from trainer.ranks import Rank, join
from trainer.receipts import write_receipt
from trainer.recipe import Serve
from trainer.roots import parameter_root
from trainer.serving.app import Desk, make_app
from trainer.serving.asked import Kept, Limits
from trainer.serving.engine import Counts, Engine
from trainer.serving.record import Record
from trainer.timers import Stopwatch

DRAIN_SECONDS = 30
"""After SIGTERM, what was accepted is answered for at most this long."""
BEAT_SECONDS = 5.0
MOST_CONNECTIONS = 2048
BACKLOG = 2048


def run(job: Job, recipe: Serve) -> None:
    """Answer until SIGTERM; then drain and write the receipt. Raises TrainerError."""
    heart = Heartbeat(job.out / "heartbeat-0.json")
    heart.beat("load")
    config = read_json(job.model / "config.json")
    desk = Desk(
        Limits(recipe.body_bytes, recipe.max_new_tokens, recipe.context, config["vocab_size"]),
        Record(job.out / "served-0.jsonl"),
        Kept() if recipe.cache else None,
    )
    listening = _listen(job.arguments.address, job.arguments.port)
    with join(job) as rank:
        replica = _Replica(job, recipe, rank, desk, listening)
        replica.serve(heart)
        write_receipt(
            job,
            rank,
            replica.body(),
            inputs={},
            model_root=desk.model_root,
            timers={"load": replica.load_s},
        )
        heart.beat("done")


def _listen(address: str, port: int) -> socket.socket:
    """A listening socket; port 0 lets the system choose. Raises TrainerError."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((address, port))
    except OSError as error:
        raise TrainerError(f"cannot listen on {address} port {port}: {error.strerror}") from None
    found.listen(BACKLOG)
    return found


class _Replica:
    """The model on a thread of its own, the server on the main one."""

    def __init__(
        self, job: Job, recipe: Serve, rank: Rank, desk: Desk, listening: socket.socket
    ) -> None:
        self._job, self._recipe, self._rank, self._desk = job, recipe, rank, desk
        self._listening = listening
        self._error: BaseException | None = None
        self._server = _Server(desk)
        self._watch = Stopwatch(rank.synchronise)
        self._served_s = 0.0
        self.load_s = 0.0

    def serve(self, heart: Heartbeat) -> None:
        """Return once drained. Raises what loading or the model raised."""
        # uvicorn raises the signal that stopped it again once it is done; ours then ends nothing.
        signal.signal(signal.SIGTERM, lambda *_: None)
        signal.signal(signal.SIGINT, lambda *_: None)
        worker = threading.Thread(target=self._work, name="engine", daemon=True)
        worker.start()
        asyncio.run(self._listen_on(heart))
        if self._desk.engine is not None:
            self._desk.engine.close()
            worker.join()
        if self._error is not None:
            raise self._error
        if self._desk.engine is None:
            raise TrainerError("stopped before it was ready to answer")

    async def _listen_on(self, heart: Heartbeat) -> None:
        beating = asyncio.ensure_future(self._beat(heart))
        await self._server.serve(sockets=[self._listening])
        beating.cancel()

    async def _beat(self, heart: Heartbeat) -> None:
        while True:
            heart.beat(self._desk.state, self._desk.counts["answered"])
            await asyncio.sleep(BEAT_SECONDS)

    def _work(self) -> None:
        """Load, verify, answer. A failure stops the server."""
        try:
            engine = self._load()
            begun = self._watch.now()
            engine.run()
            self._served_s = self._watch.now() - begun
        except BaseException as error:  # it is raised again on the main thread
            self._error = error
            self._desk.state = "failed"
            self._server.should_exit = True

    def _load(self) -> Engine:
        if self._rank.device.type == "cuda":
            torch.cuda.set_device(self._rank.device)  # of this thread
        network = model.load(self._job.model, self._rank.device)
        if not isinstance(network, model.LlamaModel):
            raise TrainerError("only plain Llamas can be served; this model runs by transformers")
        root = parameter_root(network.parameters())
        if root != self._recipe.parameter_root:
            raise TrainerError(
                f"the weights have the root {root}, not {self._recipe.parameter_root}, so nothing "
                "is answered"
            )
        engine = Engine(
            network,
            slots=self._recipe.slots,
            context=self._recipe.context,
            queue=self._recipe.queue,
            end_tokens=self._recipe.end_tokens,
            autocast=self._recipe.autocast,
        )
        self._desk.engine, self._desk.model_root = engine, root
        self._desk.state = "ready"
        address, port = self._listening.getsockname()[:2]
        self.load_s = self._job.beginning.elapsed()
        place = {"address": address, "port": port, "pid": os.getpid(), "model_root": root}
        write_json(self._job.out / "serving.json", place)
        return engine

    def body(self) -> dict[str, Any]:
        """The receipt's body."""
        counts = self._desk.engine.counts if self._desk.engine else Counts()
        return {
            "requests": dict(self._desk.counts),
            "generated_tokens": counts.generated_tokens,
            "steps": counts.steps,
            "most_running": counts.most_running,
            "seconds": self._served_s,
        }


class _Server(uvicorn.Server):
    """uvicorn, which from the first SIGTERM on accepts nothing and answers what it accepted."""

    def __init__(self, desk: Desk) -> None:
        super().__init__(
            uvicorn.Config(
                make_app(desk),
                lifespan="off",
                log_level="error",
                access_log=False,
                server_header=False,
                loop="asyncio",
                http="h11",
                ws="none",
                limit_concurrency=MOST_CONNECTIONS,
                timeout_graceful_shutdown=DRAIN_SECONDS,
            )
        )
        self._desk = desk

    def handle_exit(self, sig: int, frame: Any) -> None:
        """Refuse new requests on open connections too."""
        if self._desk.state == "ready":
            self._desk.state = "draining"
        super().handle_exit(sig, frame)
