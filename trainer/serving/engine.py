"""Continuous batching: one thread owns the model, takes requests in and gives answers out.

A request joins the batch as soon as a row is free and leaves it with its last token; nobody waits
for the others' answers to end.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch

from trainer.model import LlamaModel
from trainer.serving.rows import Chosen
from trainer.serving.static_rows import rows_for

NEAR_TIE = {None: 1e-4, "bf16": 0.125}
"""By precision: logits closer than this can change places with the batch's shape."""
PREFILL_TOKENS = 4096
"""At most about this many prompt tokens are read between two steps of those that write."""


class Full(Exception):
    """The queue is full."""


@dataclass(eq=False)
class Work:
    """One request inside the engine."""

    request: str
    prompt: Sequence[int]
    max_new_tokens: int
    began: Callable[[Work], None]
    """Called on the engine's thread when the prompt is about to be read."""
    ended: Callable[[Work], None]
    """Called on the engine's thread, once, with the answer in here."""
    tokens: list[int] = field(default_factory=list)
    ties: list[int] = field(default_factory=list)
    """Places in the answer whose token was a near tie; the end token's place may be among them."""
    stopped: str = ""
    """'end', 'limit', 'cancelled' or 'failed'; empty while it runs."""
    cancelled: bool = False


@dataclass
class Counts:
    """What the engine has done so far."""

    steps: int = 0
    generated_tokens: int = 0
    most_running: int = 0


class Engine:
    """The queue and the batch. `submit` and `cancel` may be called on any thread."""

    def __init__(
        self,
        model: LlamaModel,
        *,
        slots: int,
        context: int,
        queue: int,
        end_tokens: Sequence[int],
        autocast: str | None,
    ) -> None:
        self._rows = rows_for(model, slots, context, autocast)
        self._slots, self._queue = slots, queue
        self._end_tokens = frozenset(end_tokens)
        self._kind, self._autocast = model.device.type, autocast
        self._waiting: deque[Work] = deque()
        self._running: list[Work] = []
        self._changed = threading.Condition()
        self._closing = False
        self.counts = Counts()
        model.eval()

    @property
    def running(self) -> int:
        """Requests in the batch."""
        return len(self._running)

    @property
    def waiting(self) -> int:
        """Requests in the queue."""
        return len(self._waiting)

    def submit(self, work: Work) -> None:
        """Put a request into the queue. Raises Full."""
        with self._changed:
            # Those that will find a free row at once do not count as waiting.
            if len(self._waiting) >= self._queue + max(0, self._slots - len(self._running)):
                raise Full
            self._waiting.append(work)
            self._changed.notify()

    def cancel(self, work: Work) -> None:
        """Nobody wants the answer any more; its row is free after the next step."""
        with self._changed:
            work.cancelled = True
            self._changed.notify()

    def close(self) -> None:
        """Answer what was accepted, then let `run` return."""
        with self._changed:
            self._closing = True
            self._changed.notify()

    def run(self, tick: Callable[[], None] = lambda: None) -> None:
        """Work until closed. Raises what the model raises, after failing all requests."""
        try:
            with (
                torch.inference_mode(),
                torch.autocast(self._kind, torch.bfloat16, enabled=self._autocast == "bf16"),
            ):
                while self._wait():
                    self._admit()
                    self._step()
                    tick()
        finally:
            with self._changed:
                left, self._waiting = [*self._running, *self._waiting], deque()
                self._queue = self._slots = 0  # whoever comes later is refused
            for work in left:
                self._end(work, "failed")
            self._running = []

    def _wait(self) -> bool:
        """Whether there is something to do; blocks while there is not."""
        with self._changed:
            while not self._waiting and not self._running:
                if self._closing:
                    return False
                self._changed.wait()
            return True

    def _admit(self) -> None:
        """Read as many waiting prompts as rows are free and one step's stall allows."""
        taken: list[Work] = []
        budget = PREFILL_TOKENS
        with self._changed:
            while self._waiting and len(self._running) + len(taken) < self._slots and budget > 0:
                work = self._waiting.popleft()
                if work.cancelled:
                    self._end(work, "cancelled")
                    continue
                budget -= len(work.prompt)
                taken.append(work)
        if not taken:
            return
        for work in taken:
            work.began(work)
        self._running += taken
        self.counts.most_running = max(self.counts.most_running, len(self._running))
        chosen = self._rows.add([work.prompt for work in taken])
        self._take(chosen, len(self._running) - len(taken))

    def _step(self) -> None:
        if self._running:
            self.counts.steps += 1
            self._take(self._rows.step(), 0)

    def _take(self, chosen: list[Chosen], first: int) -> None:
        """Give the rows from `first` on their tokens; those that are done leave."""
        for row in reversed(range(first, first + len(chosen))):
            work, one = self._running[row], chosen[row - first]
            if one.gap < NEAR_TIE[self._autocast]:
                work.ties.append(len(work.tokens))
            stopped = ""
            if work.cancelled:
                stopped = "cancelled"
            elif one.token in self._end_tokens:
                stopped = "end"
            else:
                work.tokens.append(one.token)
                self.counts.generated_tokens += 1
                stopped = "limit" if len(work.tokens) >= work.max_new_tokens else ""
            if stopped:
                self._rows.drop(row)
                self._running[row] = self._running[-1]
                self._running.pop()
                self._end(work, stopped)

    def _end(self, work: Work, stopped: str) -> None:
        work.stopped = stopped
        work.ended(work)
