"""Greedy generation in batches: which prompts go together, and the plain way to write for them.

Shape suffixes: B documents, T prompt positions, S cached and new positions, H hidden size, V
vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from trainer.generate_static import Generator, rows_that_fit
from trainer.model import CausalModel, LlamaModel


@dataclass
class Answer:
    """What the model wrote for one prompt."""

    tokens: list[int] = field(default_factory=list)
    """Without the end token."""
    stopped: str = "limit"
    """'end' or 'limit'."""


PLAIN_BATCH = 32
"""Prompts at once where the recipe leaves it open and memory is not asked."""


@torch.inference_mode()
def generate(
    model: CausalModel,
    prompts: Sequence[Sequence[int]],
    *,
    max_new_tokens: int,
    batch: int | None,
    end_tokens: Sequence[int],
    autocast: str | None,
    progress: Callable[[int], None] = lambda done: None,
    tick: Callable[[], None] = lambda: None,
) -> list[Answer]:
    """The most likely token at every step, until an end token or the limit.

    Prompts of like length share a batch (longest first); answers come in the prompts' order.
    Which prompts share a batch changes nothing but rounding; None takes as many as memory holds.
    `progress` gets the number of finished prompts after every batch, `tick` is called every few
    steps. Raises ValueError on an empty prompt.
    """
    if not all(prompts):
        raise ValueError("a prompt is empty")
    model.eval()
    order = sorted(range(len(prompts)), key=lambda place: -len(prompts[place]))
    answers = [Answer() for _ in prompts]
    if not prompts:
        return answers
    write = _writer(model, prompts, max_new_tokens, batch, end_tokens, autocast, tick)
    for start in range(0, len(order), write.batch):
        places = order[start : start + write.batch]
        found = write.answers([prompts[place] for place in places])
        for place, answer in zip(places, found, strict=True):
            answers[place] = answer
        progress(min(start + write.batch, len(order)))
    return answers


class _Writes(Protocol):
    """Writes the answers of a batch."""

    batch: int

    def answers(self, prompts: Sequence[Sequence[int]]) -> list[Answer]:
        """One answer a prompt; at most `batch` prompts, longest first."""


def _writer(
    model: CausalModel,
    prompts: Sequence[Sequence[int]],
    max_new_tokens: int,
    batch: int | None,
    end_tokens: Sequence[int],
    autocast: str | None,
    tick: Callable[[], None],
) -> _Writes:
    """On a GPU our own Llama is written by replayed steps, everything else step by step."""
    if isinstance(model, LlamaModel) and model.device.type == "cuda":
        return Replayed(model, prompts, max_new_tokens, batch, end_tokens, autocast, tick)
    return _Plain(model, max_new_tokens, batch or PLAIN_BATCH, end_tokens, autocast, tick)


class Replayed:
    """Static buffers and replayed steps (trainer/generate_static.py); for a Llama of ours."""

    def __init__(
        self,
        model: LlamaModel,
        prompts: Sequence[Sequence[int]],
        max_new_tokens: int,
        batch: int | None,
        end_tokens: Sequence[int],
        autocast: str | None,
        tick: Callable[[], None],
    ) -> None:
        dtype = torch.bfloat16 if autocast == "bf16" else torch.float32
        longest = max(map(len, prompts))
        rows = batch or rows_that_fit(model, longest, max_new_tokens, dtype)
        self.batch = min(rows, len(prompts))
        self._ends = frozenset(end_tokens)
        self._generator = Generator(
            model, dtype=dtype, rows=self.batch, longest_prompt=longest,
            new_tokens=max_new_tokens, end_tokens=end_tokens, tick=tick,
        )  # fmt: skip

    def answers(self, prompts: Sequence[Sequence[int]]) -> list[Answer]:
        """One answer a prompt."""
        return [_cut(tokens, self._ends) for tokens in self._generator.write(prompts)]


def _cut(tokens: list[int], end_tokens: frozenset[int]) -> Answer:
    """An answer ends before its first end token."""
    for place, token in enumerate(tokens):
        if token in end_tokens:
            return Answer(tokens[:place], "end")
    return Answer(tokens, "limit")


class _Plain:
    """Any model on any device; rows that end leave the batch at once."""

    def __init__(
        self,
        model: CausalModel,
        max_new_tokens: int,
        batch: int,
        end_tokens: Sequence[int],
        autocast: str | None,
        tick: Callable[[], None],
    ) -> None:
        self.batch = batch
        self._model, self._limit, self._tick = model, max_new_tokens, tick
        self._ends, self._autocast = frozenset(end_tokens), autocast

    def answers(self, prompts: Sequence[Sequence[int]]) -> list[Answer]:
        """One answer a prompt."""
        writing = [Answer() for _ in prompts]
        found = list(writing)
        kind = self._model.device.type
        with torch.autocast(kind, torch.bfloat16, enabled=self._autocast == "bf16"):
            rows = _Rows(self._model, prompts, self._limit)
            _write(rows, writing, self._limit, self._ends, self._tick)
        return found


def _write(
    rows: _Rows,
    writing: list[Answer],
    max_new_tokens: int,
    end_tokens: frozenset[int],
    tick: Callable[[], None],
) -> None:
    """Extend all answers of a batch step by step; finished ones leave it."""
    for step in range(max_new_tokens):
        chosen = rows.next_tokens()
        tick()
        going = []
        for row, token in enumerate(chosen.tolist()):
            if token in end_tokens:
                writing[row].stopped = "end"
            else:
                writing[row].tokens.append(token)
                going.append(row)
        if not going or step + 1 == max_new_tokens:
            return
        if len(going) < len(writing):
            writing = [writing[row] for row in going]
        rows.append(chosen, going)


class _Rows:
    """A batch in generation: prompts, and the cache of what was read so far.

    Prompts are padded on the right, so reading them needs no mask; what is written goes behind
    the padding, which later steps mask out.
    """

    def __init__(
        self, model: CausalModel, prompts: Sequence[Sequence[int]], max_new_tokens: int
    ) -> None:
        self._model = model
        lengths_B = torch.tensor([len(prompt) for prompt in prompts])
        width = int(lengths_B.max())
        ids_BT = torch.zeros(len(prompts), width, dtype=torch.int64)
        for row, prompt in enumerate(prompts):
            ids_BT[row, : len(prompt)] = torch.tensor(prompt)
        self._length_B = lengths_B.to(model.device)
        self._mask_BS = torch.arange(width, device=model.device) < self._length_B[:, None]
        hidden_BTH, self._cache = model.read(ids_BT.to(model.device), width + max_new_tokens)
        last = (torch.arange(len(prompts), device=model.device), self._length_B - 1)
        self._hidden_BH = hidden_BTH[last]

    def next_tokens(self) -> Tensor:
        """The most likely next token of each row. FP32 logits decide."""
        with torch.autocast(self._model.device.type, enabled=False):
            logits_BV = F.linear(self._hidden_BH.float(), self._model.head_VH)
        return logits_BV.argmax(-1)

    def append(self, chosen_B: Tensor, going: list[int]) -> None:
        """Read the chosen tokens of the rows `going`, and drop the others."""
        if len(going) < chosen_B.shape[0]:
            keep = torch.tensor(going, device=chosen_B.device)
            self._cache.keep(keep)
            chosen_B = chosen_B[keep]
            self._mask_BS, self._length_B = self._mask_BS[keep], self._length_B[keep]
        self._mask_BS = F.pad(self._mask_BS, (0, 1), value=True)
        hidden_B1H = self._model.step(
            chosen_B[:, None], self._length_B[:, None], self._mask_BS, self._cache
        )
        self._length_B = self._length_B + 1
        self._hidden_BH = hidden_B1H[:, 0]
