"""Greedy generation in batches, with a cache of keys and values.

Shape suffixes: B documents, S cached and new positions, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

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
        rows = _Rows(model, [prompts[place] for place in places])
        writing = [answers[place] for place in places]
        with torch.autocast(model.device.type, torch.bfloat16, enabled=autocast == "bf16"):
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
    """A batch in generation: left-padded prompts, and the cache of what was read so far."""

    def __init__(self, model: CausalModel, prompts: Sequence[Sequence[int]]) -> None:
        self._model = model
        width = max(map(len, prompts))
        ids_BS = torch.zeros(len(prompts), width, dtype=torch.int64)
        mask_BS = torch.zeros_like(ids_BS)
        for row, prompt in enumerate(prompts):
            ids_BS[row, width - len(prompt) :] = torch.tensor(prompt)
            mask_BS[row, width - len(prompt) :] = 1
        self._new_BT = ids_BS.to(model.device)
        self._mask_BS = mask_BS.to(model.device)
        self._positions_BT = (self._mask_BS.cumsum(1) - 1).clamp_min(0)
        self._cache: Any = None

    def next_tokens(self) -> Tensor:
        """Read the new tokens; the most likely next one of each row. FP32 logits decide."""
        hidden_BTH, self._cache = self._model.extend(
            self._new_BT, self._mask_BS, self._positions_BT, self._cache
        )
        with torch.autocast(self._model.device.type, enabled=False):
            logits_BV = F.linear(hidden_BTH[:, -1].float(), self._model.head_VH)
        return logits_BV.argmax(-1)

    def append(self, chosen_B: Tensor, going: list[int]) -> None:
        """Put the chosen tokens behind the rows `going`, and drop the others."""
        if len(going) < chosen_B.shape[0]:
            keep = torch.tensor(going, device=chosen_B.device)
            self._cache.batch_select_indices(keep)
            chosen_B = chosen_B[keep]
            self._mask_BS, self._positions_BT = self._mask_BS[keep], self._positions_BT[keep]
        self._new_BT = chosen_B[:, None]
        self._mask_BS = F.pad(self._mask_BS, (0, 1), value=1)
        self._positions_BT = self._positions_BT[:, -1:] + 1
