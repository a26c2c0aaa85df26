"""Causal attention over packed documents: each position sees its own document up to itself.

Shape suffixes: T positions of all documents, h heads, k key-value heads, d size of a head, N
documents.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor


@dataclass(frozen=True)
class Segments:
    """Where documents lie in a row of T positions. They cover it without gaps."""

    lengths: tuple[int, ...]
    """Positions of each, at least one."""
    bounds_N1: Tensor
    """int32: 0, then where each ends."""
    positions_T: Tensor
    """int64: the place of each position in its own document."""

    @classmethod
    def of(cls, lengths: tuple[int, ...]) -> Segments:
        """Segments of these lengths, on the host."""
        bounds_N1 = torch.tensor((0, *lengths)).cumsum(0)
        starts_N, lengths_N = bounds_N1[:-1], torch.tensor(lengths)
        positions_T = torch.arange(int(bounds_N1[-1])) - starts_N.repeat_interleave(lengths_N)
        return cls(lengths, bounds_N1.to(torch.int32), positions_T)

    def to(self, move: Callable[[Tensor], Tensor]) -> Segments:
        """The same with both tensors moved."""
        return replace(self, bounds_N1=move(self.bounds_N1), positions_T=move(self.positions_T))


def attend(q_Thd: Tensor, k_Tkd: Tensor, v_Tkd: Tensor, segments: Segments) -> Tensor:
    """Attention's output, T×h×d.

    One variable-length kernel for half precision on a GPU (it knows no other), else torch's
    attention, a document at a time.
    """
    if q_Thd.is_cuda and q_Thd.dtype in (torch.bfloat16, torch.float16):
        return _at_once(q_Thd, k_Tkd, v_Tkd, segments)
    return _one_by_one(q_Thd, k_Tkd, v_Tkd, segments)


def _at_once(q_Thd: Tensor, k_Tkd: Tensor, v_Tkd: Tensor, segments: Segments) -> Tensor:
    """`longest` bounds every segment, padding too: a longer one would come out as NaN."""
    groups = q_Thd.shape[1] // k_Tkd.shape[1]
    if groups > 1:  # releases differ in how they are told of shared heads
        k_Tkd, v_Tkd = (x.repeat_interleave(groups, dim=1) for x in (k_Tkd, v_Tkd))
    longest = max(segments.lengths)
    kernel, causal = _kernel()
    bounds_N1 = segments.bounds_N1
    out: Tensor = kernel(q_Thd, k_Tkd, v_Tkd, bounds_N1, bounds_N1, longest, longest, **causal)
    return out


@cache
def _kernel() -> tuple[Callable[..., Any], dict[str, Any]]:
    """torch's variable-length attention, and how this release is told to be causal."""
    from torch.nn.attention.varlen import varlen_attn

    windowed = "window_size" in inspect.signature(varlen_attn).parameters
    return varlen_attn, {"window_size": (-1, 0)} if windowed else {"is_causal": True}


def _one_by_one(q_Thd: Tensor, k_Tkd: Tensor, v_Tkd: Tensor, segments: Segments) -> Tensor:
    shared = q_Thd.shape[1] != k_Tkd.shape[1]
    mixed = []
    start = 0
    for length in segments.lengths:
        q_1htd, k_1ktd, v_1ktd = (
            x[start : start + length].transpose(0, 1)[None] for x in (q_Thd, k_Tkd, v_Tkd)
        )
        out_1htd = F.scaled_dot_product_attention(
            q_1htd, k_1ktd, v_1ktd, is_causal=True, enable_gqa=shared
        )
        mixed.append(out_1htd[0].transpose(0, 1))
        start += length
    return torch.cat(mixed)
