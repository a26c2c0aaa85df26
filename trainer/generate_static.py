"""Greedy generation for GPUs: large waves, replayed steps, few looks at the host.

Prompts go through in waves, longest first, as many at once as memory holds. A step runs whole on
the device: read the chosen tokens, choose the next ones, note which rows ended. On CUDA the second
use of a step of the same size is captured as a graph, and later ones replay it, so that launching
kernels costs next to nothing. Every few steps the host looks which rows ended; when enough have,
rows still writing are moved into the places of finished ones and the steps get smaller.

Shape suffixes: R all rows of a wave, B rows in a step, T prompt positions, N new tokens.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from trainer.generate_llama import Writer, plain_kernels, row_bytes
from trainer.model import LlamaModel

LOOK_STEPS = 4
"""Steps between two looks. A row that ended computes on unread until the next one."""
SEEN_STEP = 64
"""Attention looks at a multiple of this many positions: one captured step serves so many."""
READ_TOKENS = 16_384
"""Prompt tokens that are read at once."""
_MEMORY_SHARE = 0.8
"""Of what is free, for keys and values; the rest is for activations and logits."""


@dataclass
class Wave:
    """Device-side state of the rows that are being written. Never reallocated."""

    token_R: Tensor
    position_R: Tensor
    """Where the next token goes: tokens read so far."""
    ended_R: Tensor
    owner_R: Tensor
    """Which line of `written` a row fills."""
    column: Tensor
    """How many tokens every row has chosen so far."""
    written: Tensor
    """R×N chosen tokens, flat; end tokens too, and whatever follows them."""

    @classmethod
    def empty(cls, rows: int, new_tokens: int, device: torch.device) -> Wave:
        """Room for `rows` rows."""

        def zeros(size: int, dtype: torch.dtype = torch.int64) -> Tensor:
            return torch.zeros(size, dtype=dtype, device=device)

        return cls(
            zeros(rows), zeros(rows), zeros(rows, torch.bool), zeros(rows), zeros(1),
            zeros(rows * new_tokens),
        )  # fmt: skip


class Generator:
    """Writes answers for waves of prompts with one set of buffers and captured steps."""

    def __init__(
        self,
        model: LlamaModel,
        *,
        dtype: torch.dtype,
        rows: int,
        longest_prompt: int,
        new_tokens: int,
        end_tokens: Sequence[int],
        tick: Callable[[], None] = lambda: None,
    ) -> None:
        capacity = _whole(longest_prompt + new_tokens, SEEN_STEP)
        self._writer = Writer(
            model.parameters(), model.shape, model.head_VH,
            dtype=dtype, rows=rows, capacity=capacity,
        )  # fmt: skip
        self._new_tokens = new_tokens
        self._ends = torch.tensor(sorted(end_tokens), device=model.device)
        self._wave = Wave.empty(rows, new_tokens, model.device)
        self._tick = tick
        self._steps = Steps(model.device, self._step)

    def write(self, prompts: Sequence[Sequence[int]]) -> list[list[int]]:
        """The chosen tokens of every prompt, `new_tokens` long; what follows an end token in
        them means nothing. At most `rows` prompts.
        """
        with plain_kernels():
            self._read(prompts)
            longest = max(map(len, prompts))
            rows = len(prompts)
            for done in range(1, self._new_tokens):
                if done % LOOK_STEPS == 0:
                    self._tick()
                    rows = self._shrink(rows)
                    if rows == 0:
                        break
                seen = min(_whole(longest + done, SEEN_STEP), self._writer.capacity)
                self._steps.run(rows, seen)
        chosen: list[list[int]] = self._wave.written.view(-1, self._new_tokens).tolist()
        return chosen[: len(prompts)]

    def _read(self, prompts: Sequence[Sequence[int]]) -> None:
        """Read the prompts and choose the first token of each."""
        wave, device = self._wave, self._writer.device
        wave.column.zero_()
        wave.ended_R.zero_()
        wave.owner_R.copy_(torch.arange(wave.owner_R.shape[0]))
        lengths = torch.tensor([len(prompt) for prompt in prompts])
        wave.position_R[: len(prompts)] = lengths.to(device)
        for start, end in _chunks([len(prompt) for prompt in prompts], READ_TOKENS):
            ids_BT = torch.zeros(end - start, int(lengths[start:end].max()), dtype=torch.int64)
            for row, prompt in enumerate(prompts[start:end]):
                ids_BT[row, : len(prompt)] = torch.tensor(prompt)
            hidden_BH = self._writer.read(ids_BT.to(device), lengths[start:end].to(device), start)
            wave.token_R[start:end] = self._writer.choose(hidden_BH)
            self._tick()
        self._note(len(prompts))

    def _step(self, rows: int, seen: int) -> None:
        """One more token for the first `rows` rows."""
        wave = self._wave
        hidden_BH = self._writer.step(wave.token_R[:rows], wave.position_R[:rows], seen)
        wave.token_R[:rows] = self._writer.choose(hidden_BH)
        wave.position_R[:rows] += 1
        self._note(rows)

    def _note(self, rows: int) -> None:
        """Write the chosen tokens down."""
        wave = self._wave
        token_B = wave.token_R[:rows]
        places_B = wave.owner_R[:rows] * self._new_tokens + wave.column
        wave.written.scatter_(0, places_B, token_B)
        wave.ended_R[:rows] |= (token_B[:, None] == self._ends).any(1)
        wave.column += 1

    def _shrink(self, rows: int) -> int:
        """Leave out finished rows where that makes steps smaller. Returns how many go on."""
        ended = self._wave.ended_R[:rows].tolist()
        going = ended.count(False)
        fewer = step_size(going, rows)
        if fewer == rows:
            return rows
        holes = [row for row in range(fewer) if ended[row]]
        movers = [row for row in range(fewer, rows) if not ended[row]]
        if movers:
            targets, sources = (
                torch.tensor(each, device=self._writer.device)
                for each in (holes[: len(movers)], movers)
            )
            self._writer.move(sources, targets)
            wave = self._wave
            for line in (wave.token_R, wave.position_R, wave.ended_R, wave.owner_R):
                line[targets] = line[sources]
        return fewer


def step_size(going: int, rows: int) -> int:
    """The rows of the next steps when `going` of `rows` still write.

    A power of two or three times one, at least 8, so that few sizes occur; never above `rows`.
    """
    if going == 0:
        return 0
    power = 1 << max(3, (going - 1).bit_length())
    return min(rows, power // 4 * 3 if power > 8 and going <= power // 4 * 3 else power)


class Steps:
    """Runs steps of any size: at first directly; on CUDA, from the second use on, as a graph.

    Where capturing fails, which it does before anything ran, steps go on directly: slower, the
    same results.
    """

    def __init__(self, device: torch.device, step: Callable[[int, int], None]) -> None:
        self._captures = device.type == "cuda"
        self._step = step
        self._graphs: dict[tuple[int, int], torch.cuda.CUDAGraph | None] = {}
        self._pool: Any = None

    def run(self, rows: int, seen: int) -> None:
        """One step."""
        key = (rows, seen)
        graph = self._graphs.get(key)
        if graph is None and self._captures and key in self._graphs:
            graph = self._capture(rows, seen)
        self._graphs[key] = graph
        if graph is None:
            self._step(rows, seen)
        else:
            graph.replay()

    def _capture(self, rows: int, seen: int) -> torch.cuda.CUDAGraph | None:
        """The step as a graph; capturing does nothing itself."""
        try:
            graph = torch.cuda.CUDAGraph()
            self._pool = self._pool or torch.cuda.graph_pool_handle()
            with torch.cuda.graph(graph, pool=self._pool):
                self._step(rows, seen)
        except RuntimeError as error:
            sentence = " ".join(str(error).split())[:200]
            print(f"trainer: steps are not captured: {sentence}", file=sys.stderr, flush=True)
            self._captures = False
            return None
        return graph


def rows_that_fit(model: LlamaModel, longest: int, new_tokens: int, dtype: torch.dtype) -> int:
    """How many rows of keys and values the device's free memory holds, at least one."""
    free, _ = torch.cuda.mem_get_info(model.device)
    unused = torch.cuda.memory_reserved(model.device) - torch.cuda.memory_allocated(model.device)
    copies = 0 if dtype == torch.float32 else sum(p.numel() for p in model.parameters().values())
    room = _MEMORY_SHARE * (free + unused) - copies * dtype.itemsize
    capacity = _whole(longest + new_tokens, SEEN_STEP)
    return max(1, int(room) // row_bytes(model.shape, capacity, dtype))


def _chunks(lengths: Sequence[int], tokens: int) -> list[tuple[int, int]]:
    """Consecutive pieces of at most `tokens` tokens, padding counted, and at least one prompt."""
    chunks, start = [], 0
    for end in range(1, len(lengths) + 1):
        if end == len(lengths) or (end + 1 - start) * max(lengths[start : end + 1]) > tokens:
            chunks.append((start, end))
            start = end
    return chunks


def _whole(count: int, step: int) -> int:
    """`count`, rounded up to a multiple of `step`."""
    return -(-count // step) * step
