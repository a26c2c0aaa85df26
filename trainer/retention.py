"""Loss on documents that training should not have changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from trainer.batches import Document, collate
from trainer.generate import PLAIN_BATCH
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
    batch: int | None,
    autocast: str | None,
    progress: Callable[[int], None] = lambda done: None,
) -> list[DocumentLoss]:
    """Every document's loss, in the order given. Documents of like length share a batch.

    Sums stay on the device until all batches are queued, so none waits for the host.
    """
    model.eval()
    batch = batch or PLAIN_BATCH
    order = sorted(range(len(documents)), key=lambda place: -len(documents[place].tokens))
    queued = []
    for start in range(0, len(order), batch):
        places = order[start : start + batch]
        together = collate([documents[place] for place in places]).to(model.device)
        losses_N = token_losses(model, together, autocast).double()
        sums_B = torch.zeros(len(places), dtype=torch.float64, device=model.device)
        queued.append(sums_B.index_add_(0, together.document_N, losses_N))
        progress(min(start + batch, len(order)))
    totals = torch.cat(queued).tolist() if queued else []
    found = dict(zip(order, totals, strict=True))
    return [
        DocumentLoss(document.id, found[place] / document.target_count, document.target_count)
        for place, document in enumerate(documents)
    ]
