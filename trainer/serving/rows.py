"""Rows in generation that come and go: each has a prompt of its own length and its own answer.

Shape suffixes: B rows, T prompt positions, S cached positions, H hidden size, V vocabulary, k
key-value heads, d size of a head.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from trainer.cache import Cache
from trainer.model import LlamaModel

CHUNK = 256
"""The cache grows by this many positions at a time."""


class Chosen(NamedTuple):
    """One step's token of a row."""

    token: int
    gap: float
    """How far the logit of the second choice is behind."""


class RowsInUse(Protocol):
    """Rows of a batch, from 0 without gaps."""

    def __len__(self) -> int: ...

    def add(self, prompts: Sequence[Sequence[int]]) -> list[Chosen]:
        """Read prompts into new rows at the end; the first token of each."""

    def step(self) -> list[Chosen]:
        """Every row reads its newest token; the next token of each."""

    def drop(self, row: int) -> None:
        """Take a row out; the last row takes its place."""


class SlotCache(Cache):
    """Keys and values of rows of different lengths; the rows in use come first."""

    def __init__(self, slots: int) -> None:
        super().__init__(0)
        self._slots = slots
        self._held: list[tuple[Tensor, Tensor]] = []
        self._length_B = torch.zeros(0, dtype=torch.int64)
        self._longest = 0

    def at(self, length_B: Tensor, longest: int) -> None:
        """Say where the next step's keys go: behind `length_B` positions of each row."""
        self._length_B, self._longest = length_B, longest
        if self._held and self._held[0][0].shape[2] <= longest:
            self._held = [(_grown(keys), _grown(values)) for keys, values in self._held]

    def extend(self, layer: int, k_BkTd: Tensor, v_BkTd: Tensor) -> tuple[Tensor, Tensor]:
        """Put one new position behind each row's others; views of all of them."""
        rows = torch.arange(k_BkTd.shape[0], device=k_BkTd.device)
        keys, values = self._held[layer]
        keys[rows, :, self._length_B] = k_BkTd[:, :, 0]
        values[rows, :, self._length_B] = v_BkTd[:, :, 0]
        used = slice(0, self._longest + 1)
        return keys[: len(rows), :, used], values[: len(rows), :, used]

    def advance(self, positions: int) -> None:
        """Nothing to count: the rows keep their own lengths."""

    def put(self, row: int, read: Cache, place: int, length: int) -> None:
        """Copy what was read of the prompt at `place` into a row."""
        if not self._held:
            self._held = [self._empty(keys, length) for keys, _ in read.layers]
        while self._held[0][0].shape[2] < length:
            self._held = [(_grown(keys), _grown(values)) for keys, values in self._held]
        for (keys, values), (k, v) in zip(self._held, read.layers, strict=True):
            keys[row, :, :length] = k[place, :, :length]
            values[row, :, :length] = v[place, :, :length]

    def move(self, source: int, target: int, length: int) -> None:
        """Put one row in another's place."""
        for keys, values in self._held:
            keys[target, :, :length] = keys[source, :, :length]
            values[target, :, :length] = values[source, :, :length]

    def _empty(self, like: Tensor, length: int) -> tuple[Tensor, Tensor]:
        capacity = -(-(length + 1) // CHUNK) * CHUNK
        shape = (self._slots, like.shape[1], capacity, like.shape[3])
        return like.new_zeros(shape), like.new_zeros(shape)


def _grown(tensor: Tensor) -> Tensor:
    return F.pad(tensor, (0, 0, 0, CHUNK))


class Rows:
    """The rows of a batch, for CPUs. Which rows share it changes nothing but rounding."""

    def __init__(self, model: LlamaModel, slots: int) -> None:
        self._model = model
        self._cache = SlotCache(slots)
        self._lengths: list[int] = []
        """Positions cached, by row."""
        self._newest: list[int] = []
        """The token that each row reads next."""

    def __len__(self) -> int:
        return len(self._lengths)

    def add(self, prompts: Sequence[Sequence[int]]) -> list[Chosen]:
        """Read prompts into new rows at the end; the first token of each."""
        lengths = [len(prompt) for prompt in prompts]
        ids_BT = torch.zeros(len(prompts), max(lengths), dtype=torch.int64)
        for place, prompt in enumerate(prompts):
            ids_BT[place, : len(prompt)] = torch.tensor(prompt)
        hidden_BTH, read = self._model.read(ids_BT.to(self._model.device), ids_BT.shape[1])
        for place, length in enumerate(lengths):
            self._cache.put(len(self), read, place, length)
            self._lengths.append(length)
            self._newest.append(0)
        last_B = torch.tensor(lengths, device=self._model.device) - 1
        hidden_BH = hidden_BTH[torch.arange(len(prompts), device=last_B.device), last_B]
        return self._choose(hidden_BH, len(self) - len(prompts))

    def step(self) -> list[Chosen]:
        """Every row reads its newest token; the next token of each."""
        device = self._model.device
        length_B = torch.tensor(self._lengths, device=device)
        longest = max(self._lengths)
        self._cache.at(length_B, longest)
        mask_BS = torch.arange(longest + 1, device=device) <= length_B[:, None]
        ids_B1 = torch.tensor(self._newest, device=device)[:, None]
        hidden_B1H = self._model.step(ids_B1, length_B[:, None], mask_BS, self._cache)
        self._lengths = [length + 1 for length in self._lengths]
        return self._choose(hidden_B1H[:, 0], 0)

    def drop(self, row: int) -> None:
        """Take a row out; the last row takes its place."""
        last = len(self) - 1
        if row != last:
            self._cache.move(last, row, self._lengths[last])
            self._lengths[row], self._newest[row] = self._lengths[last], self._newest[last]
        self._lengths.pop()
        self._newest.pop()

    def _choose(self, hidden_BH: Tensor, first: int) -> list[Chosen]:
        """The most likely token of each row. FP32 logits decide."""
        with torch.autocast(self._model.device.type, enabled=False):
            logits_BV = F.linear(hidden_BH.float(), self._model.head_VH)
        best_B2 = logits_BV.topk(2, dim=-1).values
        both = torch.stack(
            (logits_BV.argmax(-1).double(), (best_B2[:, 0] - best_B2[:, 1]).double())
        )
        tokens, gaps = both.tolist()
        chosen = [Chosen(int(token), gap) for token, gap in zip(tokens, gaps, strict=True)]
        self._newest[first:] = [each.token for each in chosen]
        return chosen
