"""The objective: weighted token losses at target positions, and nothing computed elsewhere.

For one update it is sum(w_d * nll_{d,t}) / sum(w_d * |targets_d|) over all documents d of all
workers. Each microbatch adds its share of the numerator; the denominator is known beforehand
from the inputs, so no split of the documents changes the result.

Shape suffixes: B documents, T positions, H hidden size, N target positions.
"""

from __future__ import annotations

import torch
from torch import Tensor

from trainer import head
from trainer.batches import Batch
from trainer.errors import TrainerError
from trainer.model import Network, PackedNetwork
from trainer.precision import Precision


def token_losses(network: Network, batch: Batch, autocast: str | None) -> Tensor:
    """Negative log-likelihood in nats of every target, float32, N long. No gradient.

    The head is applied at target positions only.
    """
    precision = Precision(torch.bfloat16 if autocast == "bf16" else torch.float32)
    hidden_NH = _hidden(network, batch, precision)
    return head.losses(hidden_NH, network.head_VH, batch.target_N, precision)


def weighted_loss_sum(
    network: Network, batch: Batch, precision: Precision, *, compiled: bool = False
) -> Tensor:
    """This microbatch's share of the numerator: a scalar float32 with a gradient."""
    hidden_NH = _hidden(network, batch, precision)
    return head.weighted_sum(
        hidden_NH, network.head_VH, batch.target_N, batch.weight_N, precision, compiled=compiled
    )


def _hidden(network: Network, batch: Batch, precision: Precision) -> Tensor:
    """Hidden states that targets are predicted from."""
    if batch.segments is not None:
        if not isinstance(network, PackedNetwork):
            raise TrainerError(
                "packed documents need a model that this trainer runs itself: a Llama"
            )
        hidden_TH = network.packed(batch.ids_BT[0], batch.segments, precision)
        return hidden_TH.index_select(0, batch.place_N)
    narrow = precision.compute != torch.float32
    with torch.autocast(batch.ids_BT.device.type, torch.bfloat16, enabled=narrow):
        hidden_BTH = network.hidden(batch.ids_BT)
    return hidden_BTH.flatten(0, 1).index_select(0, batch.place_N)
