"""The objective: weighted token losses at target positions, and nothing computed elsewhere.

For one update it is sum(w_d * nll_{d,t}) / sum(w_d * |targets_d|) over all documents d of all
workers. Each microbatch adds its share of the numerator; the denominator is known beforehand
from the inputs, so no split of the documents changes the result.

Shape suffixes: B documents, T positions, H hidden size, V vocabulary, N target positions.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from trainer.batches import Batch
from trainer.model import Network

_HEAD_POSITIONS = 4096
"""Most target positions whose logits are held at once (FP32, 0.8 GB for 49,152 words)."""


def token_losses(
    network: Network, batch: Batch, autocast: str | None, *, recompute_logits: bool = False
) -> Tensor:
    """Negative log-likelihood in nats of every target, float32, N long.

    The head is applied at target positions only. With `recompute_logits` the backward pass
    computes logits again instead of keeping them.
    """
    device = batch.ids_BT.device.type
    with torch.autocast(device, torch.bfloat16, enabled=autocast == "bf16"):
        hidden_BTH = network.hidden(batch.ids_BT)
        hidden_NH = hidden_BTH.flatten(0, 1).index_select(0, batch.place_N)
        losses = []
        for part_NH, target_N in zip(
            torch.split(hidden_NH, _HEAD_POSITIONS),
            torch.split(batch.target_N, _HEAD_POSITIONS),
            strict=True,
        ):
            if recompute_logits:
                loss_N = checkpoint(
                    _head_losses, part_NH, network.head_VH, target_N, use_reentrant=False
                )
            else:
                loss_N = _head_losses(part_NH, network.head_VH, target_N)
            losses.append(loss_N)
    return torch.cat(losses) if len(losses) > 1 else losses[0]


def _head_losses(hidden_NH: Tensor, head_VH: Tensor, target_N: Tensor) -> Tensor:
    logits_NV = F.linear(hidden_NH, head_VH)
    return F.cross_entropy(logits_NV.float(), target_N, reduction="none")


def weighted_loss_sum(
    network: Network, batch: Batch, autocast: str | None, *, recompute_logits: bool = False
) -> Tensor:
    """This microbatch's share of the numerator: a scalar float32 with a gradient."""
    losses_N = token_losses(network, batch, autocast, recompute_logits=recompute_logits)
    return torch.dot(losses_N, batch.weight_N.to(losses_N.dtype))
