"""Rows in generation for GPUs: buffers that never move, and steps that are captured and replayed.

The rows' lengths and newest tokens are the host's and go to the device before every step, so that a
replayed step depends on nothing else. A step has one of few sizes; rows beyond those in use compute
at their first position what nobody reads.

Shape suffixes: R all rows, B rows in a step, T prompt positions, H hidden size, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from trainer.generate_llama import Writer, plain_kernels
from trainer.generate_static import SEEN_STEP, Steps, step_size
from trainer.model import LlamaModel
from trainer.serving.rows import Chosen, Rows, RowsInUse


def rows_for(model: LlamaModel, slots: int, context: int, autocast: str | None) -> RowsInUse:
    """The rows that suit the model's device."""
    if model.device.type == "cpu":
        return Rows(model, slots)
    dtype = torch.bfloat16 if autocast == "bf16" else torch.float32
    return StaticRows(model, slots, context, dtype)


class StaticRows:
    """The same as `Rows`, with room for `slots` rows of `context` positions from the start."""

    def __init__(self, model: LlamaModel, slots: int, context: int, dtype: torch.dtype) -> None:
        capacity = -(-context // SEEN_STEP) * SEEN_STEP
        self._writer = Writer(
            model.parameters(), model.shape, model.head_VH,
            dtype=dtype, rows=slots, capacity=capacity,
        )  # fmt: skip
        self._head_VH = model.head_VH.detach()
        self._device = model.device
        self._slots = slots
        self._lengths: list[int] = []
        self._newest: list[int] = []
        self._given_2R = torch.zeros(2, slots, dtype=torch.int64, device=model.device)
        """Newest tokens and lengths, from the host."""
        self._chosen_2R = torch.zeros(2, slots, dtype=torch.float64, device=model.device)
        """Next tokens and gaps, for the host."""
        self._steps = Steps(model.device, self._step)

    def __len__(self) -> int:
        return len(self._lengths)

    def add(self, prompts: Sequence[Sequence[int]]) -> list[Chosen]:
        """Read prompts into new rows at the end; the first token of each."""
        first, lengths = len(self), [len(prompt) for prompt in prompts]
        ids_BT = torch.zeros(len(prompts), max(lengths), dtype=torch.int64)
        for place, prompt in enumerate(prompts):
            ids_BT[place, : len(prompt)] = torch.tensor(prompt)
        length_B = torch.tensor(lengths, device=self._device)
        with plain_kernels(), torch.autocast(self._device.type, enabled=False):
            hidden_BH = self._writer.read(ids_BT.to(self._device), length_B, first)
            self._choose(hidden_BH, slice(first, first + len(prompts)))
        self._lengths += lengths
        self._newest += [0] * len(prompts)
        return self._take(slice(first, first + len(prompts)))

    def step(self) -> list[Chosen]:
        """Every row reads its newest token; the next token of each."""
        rows = step_size(len(self), self._slots)
        idle = [0] * (rows - len(self))
        given = torch.tensor([self._newest + idle, self._lengths + idle])
        seen = -(-(max(self._lengths) + 1) // SEEN_STEP) * SEEN_STEP
        self._given_2R[:, :rows] = given.to(self._device)
        with plain_kernels(), torch.autocast(self._device.type, enabled=False):
            self._steps.run(rows, min(seen, self._writer.capacity))
        self._lengths = [length + 1 for length in self._lengths]
        return self._take(slice(0, len(self)))

    def drop(self, row: int) -> None:
        """Take a row out; the last row takes its place."""
        last = len(self) - 1
        if row != last:
            target, source = (torch.tensor([each], device=self._device) for each in (row, last))
            self._writer.move(source, target)
            self._lengths[row], self._newest[row] = self._lengths[last], self._newest[last]
        self._lengths.pop()
        self._newest.pop()

    def _step(self, rows: int, seen: int) -> None:
        """What is captured."""
        hidden_BH = self._writer.step(self._given_2R[0, :rows], self._given_2R[1, :rows], seen)
        self._choose(hidden_BH, slice(0, rows))

    def _choose(self, hidden_BH: Tensor, rows: slice) -> None:
        """The most likely token of each row. FP32 logits decide."""
        logits_BV = F.linear(hidden_BH.float(), self._head_VH)
        best_B2 = logits_BV.topk(2, dim=-1).values
        self._chosen_2R[0, rows] = logits_BV.argmax(-1).double()
        self._chosen_2R[1, rows] = (best_B2[:, 0] - best_B2[:, 1]).double()

    def _take(self, rows: slice) -> list[Chosen]:
        tokens, gaps = self._chosen_2R[:, rows].tolist()
        chosen = [Chosen(int(token), gap) for token, gap in zip(tokens, gaps, strict=True)]
        self._newest[rows] = [each.token for each in chosen]
        return chosen
