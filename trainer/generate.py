"""Greedy generation in batches, with a cache of keys and values.

Shape suffixes: B documents, T prompt positions, S cached and new positions, H hidden size, V
vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor

from trainer.model import CausalModel


@dataclass
class Answer:
    """What the model wrote for one prompt."""

    tokens: list[int] = field(default_factory=list)
    """Without the end token."""
    stopped: str = "limit"
    """'end' or 'limit'."""


@torch.inference_mode()
def generate(
    model: CausalModel,
    prompts: Sequence[Sequence[int]],
    *,
    max_new_tokens: int,
    batch: int,
    end_tokens: Sequence[int],
    autocast: str | None,
    progress: Callable[[int], None] = lambda done: None,
    tick: Callable[[], None] = lambda: None,
) -> list[Answer]:
    """The most likely token at every step, until an end token or the limit.

    Prompts of like length share a batch (longest first); answers come in the prompts' order.
    Which prompts share a batch changes nothing but rounding. `progress` gets the number of
    finished prompts after every batch, `tick` is called at every step. Raises ValueError on an
    empty prompt.
    """
    if not all(prompts):
        raise ValueError("a prompt is empty")
    model.eval()
    order = sorted(range(len(prompts)), key=lambda place: -len(prompts[place]))
    answers = [Answer() for _ in prompts]
    for start in range(0, len(order), batch):
        places = order[start : start + batch]
        writing = [answers[place] for place in places]
        with torch.autocast(model.device.type, torch.bfloat16, enabled=autocast == "bf16"):
            rows = _Rows(model, [prompts[place] for place in places], max_new_tokens)
            _write(rows, writing, max_new_tokens, frozenset(end_tokens), tick)
        progress(min(start + batch, len(order)))
    return answers


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
