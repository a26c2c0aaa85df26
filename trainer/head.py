"""The head and its loss at target positions, a chunk of positions at a time.

The forward pass already computes the gradients of each chunk, so that no logits are kept and none
are computed twice: the loss enters the update only as a multiple of this sum.

Shape suffixes: N target positions, n those of a chunk, H hidden size, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from trainer.precision import Precision

CHUNK = 4096
"""Most positions whose logits are held at once (FP32, 0.8 GB for 49,152 words)."""


def losses(hidden_NH: Tensor, head_VH: Tensor, target_N: Tensor, precision: Precision) -> Tensor:
    """Negative log-likelihood in nats of every target, N long, at least FP32. No gradient."""
    narrow_VH = _narrow(head_VH, precision)
    parts = [
        F.cross_entropy(_logits(part_nH, narrow_VH, precision), target_n, reduction="none")
        for part_nH, target_n in zip(
            torch.split(hidden_NH, CHUNK), torch.split(target_N, CHUNK), strict=True
        )
    ]
    return torch.cat(parts)


def weighted_sum(
    hidden_NH: Tensor,
    head_VH: Tensor,
    target_N: Tensor,
    weight_N: Tensor,
    precision: Precision,
    *,
    compiled: bool = False,
) -> Tensor:
    """Sum of weight times loss over all targets: a scalar of at least FP32, with a gradient."""
    slopes = compiled_slopes() if compiled else loss_and_slopes
    total: Tensor = _WeightedSum.apply(hidden_NH, head_VH, target_N, weight_N, precision, slopes)
    return total


def loss_and_slopes(
    logits_nV: Tensor, target_n: Tensor, weight_n: Tensor, narrow: torch.dtype
) -> tuple[Tensor, Tensor]:
    """Weighted sum of the losses, and its derivative by the logits (n×V, in `narrow`)."""
    norm_n = torch.logsumexp(logits_nV, dim=-1)
    picked_n = logits_nV.gather(-1, target_n[:, None])[:, 0]
    total = torch.dot(norm_n - picked_n, weight_n)
    is_target_nV = torch.arange(logits_nV.shape[1], device=target_n.device) == target_n[:, None]
    share_nV = torch.exp(logits_nV - norm_n[:, None])
    return total, ((share_nV - is_target_nV.to(share_nV.dtype)) * weight_n[:, None]).to(narrow)


@cache
def compiled_slopes(backend: str = "inductor") -> Callable[..., tuple[Tensor, Tensor]]:
    """The same, compiled: one pass over the logits instead of several."""
    return torch.compile(loss_and_slopes, fullgraph=True, dynamic=True, backend=backend)


def _narrow(x: Tensor, precision: Precision) -> Tensor:
    """An operand of the head's products; float64 models (checks) stay as they are."""
    return x if precision.head == "fp32" or x.dtype == torch.float64 else x.to(precision.compute)


def _logits(hidden_nH: Tensor, narrow_VH: Tensor, precision: Precision) -> Tensor:
    narrow_nH = hidden_nH.to(narrow_VH.dtype)
    if precision.head != "wide" or narrow_VH.dtype != torch.bfloat16:
        logits_nV = F.linear(narrow_nH, narrow_VH)
        return logits_nV if logits_nV.dtype == torch.float64 else logits_nV.float()
    if narrow_nH.is_cuda:
        return torch.mm(narrow_nH, narrow_VH.t(), out_dtype=torch.float32)
    return F.linear(narrow_nH.float(), narrow_VH.float())


class _WeightedSum(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        hidden_NH: Tensor,
        head_VH: Tensor,
        target_N: Tensor,
        weight_N: Tensor,
        precision: Precision,
        slopes: Callable[..., tuple[Tensor, Tensor]],
    ) -> Tensor:
        narrow_VH = _narrow(head_VH, precision)
        hidden_slope_NH = torch.empty_like(hidden_NH)
        head_slope_VH = None
        totals = []
        for start in range(0, hidden_NH.shape[0], CHUNK):
            chunk = slice(start, start + CHUNK)
            part_nH = hidden_NH[chunk]
            logits_nV = _logits(part_nH, narrow_VH, precision)
            weight_n = weight_N[chunk].to(logits_nV.dtype)
            total, slope_nV = slopes(logits_nV, target_N[chunk], weight_n, narrow_VH.dtype)
            totals.append(total)
            hidden_slope_NH[chunk] = slope_nV @ narrow_VH
            part_slope_VH = slope_nV.t() @ part_nH.to(narrow_VH.dtype)
            if head_slope_VH is None:
                head_slope_VH = part_slope_VH.to(head_VH.dtype)
            else:
                head_slope_VH += part_slope_VH
        ctx.save_for_backward(hidden_slope_NH, head_slope_VH)
        return torch.stack(totals).sum()

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor | None, ...]:
        hidden_slope_NH, head_slope_VH = ctx.saved_tensors
        (slope,) = slopes
        return hidden_slope_NH * slope, head_slope_VH * slope, None, None, None, None
