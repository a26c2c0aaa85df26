"""Loss on documents that training should not have changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from trainer.batches import Document, collate
from trainer.model import CausalModel
from trainer.objective import token_losses


@dataclass(frozen=True)
class DocumentLoss:
    """One document's loss."""

    id: str
    loss: float
    """Mean over its targets, nats, unweighted."""
    targets: int


@torch.inference_mode()
def document_losses(
    model: CausalModel,
    documents: Sequence[Document],
    *,
    batch: int,
    autocast: str | None,
    progress: Callable[[int], None] = lambda done: None,
) -> list[DocumentLoss]:
    """Every document's loss, in the order given. Documents of like length share a batch."""
    model.eval()
    order = sorted(range(len(documents)), key=lambda place: -len(documents[place].tokens))
    found: dict[int, DocumentLoss] = {}
    for start in range(0, len(order), batch):
        places = order[start : start + batch]
        together = collate([documents[place] for place in places]).to(model.device)
        losses_N = token_losses(model, together, autocast).double()
        sums = torch.zeros(len(places), dtype=torch.float64, device=model.device)
        sums.index_add_(0, together.document_N, losses_N)
        for place, total in zip(places, sums.tolist(), strict=True):
            document = documents[place]
            count = document.target_count
            found[place] = DocumentLoss(document.id, total / count, count)
        progress(min(start + batch, len(order)))
    return [found[place] for place in range(len(documents))]
