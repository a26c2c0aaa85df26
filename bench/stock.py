"""Stock loops: a plain transformers model, padded batches, torch's own AdamW."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from trainer.batches import Batch, Document, collate


@dataclass(frozen=True)
class Stock:
    """Settings that such a loop has."""

    name: str
    microbatch: int = 16
    checkpointing: bool = True
    by_length: bool = False
    fused: bool = False
    autocast: bool = True


REFERENCE = Stock("reference: padded 16, checkpointing, AdamW")
SEARCH = (
    Stock("stock: 16, kept activations, fused AdamW", checkpointing=False, fused=True),
    Stock("stock: 16, the same by length", checkpointing=False, fused=True, by_length=True),
    Stock("stock: 32 by length", 32, checkpointing=False, fused=True, by_length=True),
    Stock("stock: 64 by length", 64, checkpointing=False, fused=True, by_length=True),
)
"""What a user of the stock loop would try next; the fastest of them is the second yardstick."""


class StockLoop:
    """A model and its optimizer."""

    def __init__(self, settings: Stock, folder: Path, device: torch.device) -> None:
        from transformers.models.llama.modeling_llama import LlamaForCausalLM

        self.settings = settings
        self.device = device
        self.model: Any = LlamaForCausalLM.from_pretrained(
            folder, dtype=torch.float32, attn_implementation="sdpa"
        ).to(device)  # type: ignore[arg-type]
        self.model.train()
        if settings.checkpointing:
            self.model.gradient_checkpointing_enable({"use_reentrant": False})
        kind = {"fused": True} if settings.fused else {"foreach": True}
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=3e-5, betas=(0.9, 0.999), weight_decay=0.01, **kind
        )

    def update(self, documents: Sequence[Document]) -> float:
        """One update; its weighted mean loss."""
        total = sum(d.weight * d.target_count for d in documents)
        loss_sum = torch.zeros((), device=self.device)
        for batch in self.batches(documents):
            loss = self.loss(batch.to(self.device)) / total
            torch.autograd.backward(loss)
            loss_sum += loss.detach()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return float(loss_sum)

    def batches(self, documents: Sequence[Document]) -> Iterator[Batch]:
        """Padded microbatches, with target positions."""
        if self.settings.by_length:
            documents = sorted(documents, key=lambda d: -len(d.tokens))
        size = self.settings.microbatch
        for start in range(0, len(documents), size):
            yield collate(documents[start : start + size])

    def loss(self, batch: Batch) -> Tensor:
        """Weighted loss sum of a microbatch, from full logits as transformers gives them."""
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.settings.autocast):
            logits_BTV = self.model(input_ids=batch.ids_BT).logits
        logits_NV = logits_BTV.flatten(0, 1)[batch.place_N].float()
        losses_N = F.cross_entropy(logits_NV, batch.target_N, reduction="none")
        return torch.dot(losses_N, batch.weight_N)
