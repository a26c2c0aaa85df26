"""A Llama over packed documents: one row of positions, blocks that can be compiled.

Autocast's casts are written out here, so that a compiled block is a plain function of tensors.

Shape suffixes: T positions of all documents, H hidden size, I inner size, h heads, k key-value
heads, d size of a head.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from trainer.attention import Segments, attend
from trainer.llama import Layer, Llama, turn
from trainer.precision import Precision


def _read(x_TH: Tensor, gain_H: Tensor, epsilon: float, compute: torch.dtype) -> Tensor:
    """What a block reads of the residual stream: normalised in FP32, then narrowed."""
    return F.rms_norm(x_TH.float(), gain_H.shape, gain_H, epsilon).to(compute)


def _linear(x: Tensor, weight: Tensor) -> Tensor:
    return F.linear(x, weight.to(x.dtype))


def before_attention(
    x_TH: Tensor,
    gain_H: Tensor,
    q_proj: Tensor,
    k_proj: Tensor,
    v_proj: Tensor,
    cosine_T1d: Tensor,
    sine_T1d: Tensor,
    epsilon: float,
    compute: torch.dtype,
) -> tuple[Tensor, Tensor, Tensor]:
    """Queries T×h×d, keys and values T×k×d, with rotary positions in."""
    read_TH = _read(x_TH, gain_H, epsilon, compute)
    heads = (x_TH.shape[0], -1, cosine_T1d.shape[-1])
    turns = (cosine_T1d, sine_T1d)
    q_Thd = turn(_linear(read_TH, q_proj).view(heads), turns)
    k_Tkd = turn(_linear(read_TH, k_proj).view(heads), turns)
    return q_Thd, k_Tkd, _linear(read_TH, v_proj).view(heads)


def after_attention(
    x_TH: Tensor,
    mixed_Thd: Tensor,
    o_proj: Tensor,
    gain_H: Tensor,
    gate_proj: Tensor,
    up_proj: Tensor,
    down_proj: Tensor,
    epsilon: float,
    compute: torch.dtype,
) -> Tensor:
    """The residual stream with attention's output and the inner network's added."""
    x_TH = (x_TH + _linear(mixed_Thd.flatten(1), o_proj)).to(x_TH.dtype)
    read_TH = _read(x_TH, gain_H, epsilon, compute)
    inner_TI = F.silu(_linear(read_TH, gate_proj)) * _linear(read_TH, up_proj)
    return (x_TH + _linear(inner_TI, down_proj)).to(x_TH.dtype)


@dataclass(frozen=True)
class Blocks:
    """The two halves of every layer; attention stands between them and is never compiled."""

    before: Callable[..., tuple[Tensor, Tensor, Tensor]]
    after: Callable[..., Tensor]


PLAIN = Blocks(before_attention, after_attention)


@cache
def compiled(backend: str = "inductor") -> Blocks:
    """The same, compiled once for all layers (they differ in weights alone)."""
    settings: dict[str, Any] = {"fullgraph": True, "backend": backend}
    return Blocks(
        torch.compile(before_attention, **settings), torch.compile(after_attention, **settings)
    )


def hidden(
    llama: Llama,
    ids_T: Tensor,
    segments: Segments,
    precision: Precision,
    *,
    blocks: Blocks = PLAIN,
    checkpointing: bool = False,
) -> Tensor:
    """Last hidden states of packed documents, T×H, FP32; as if each were alone.

    With `checkpointing` the backward pass computes each layer again.
    """
    cosine_T1d, sine_T1d = (
        angles.squeeze(0).transpose(0, 1) for angles in llama.turns(segments.positions_T[None])
    )
    x_TH = llama.model.embed_tokens(ids_T).to(precision.residual)
    for layer in llama.model.layers:
        assert isinstance(layer, Layer)
        rest = (layer, cosine_T1d, sine_T1d, segments, precision, blocks)
        if checkpointing and torch.is_grad_enabled():
            x_TH = checkpoint(_layer, x_TH, *rest, use_reentrant=False)
        else:
            x_TH = _layer(x_TH, *rest)
    out: Tensor = llama.model.norm(x_TH)
    return out


def _layer(
    x_TH: Tensor,
    layer: Layer,
    cosine_T1d: Tensor,
    sine_T1d: Tensor,
    segments: Segments,
    precision: Precision,
    blocks: Blocks,
) -> Tensor:
    attention, inner = layer.self_attn, layer.mlp
    first, second = layer.input_layernorm, layer.post_attention_layernorm
    q_Thd, k_Tkd, v_Tkd = blocks.before(
        x_TH,
        first.weight,
        attention.q_proj.weight,
        attention.k_proj.weight,
        attention.v_proj.weight,
        cosine_T1d,
        sine_T1d,
        first.epsilon,
        precision.compute,
    )
    return blocks.after(
        x_TH,
        attend(q_Thd, k_Tkd, v_Tkd, segments),
        attention.o_proj.weight,
        second.weight,
        inner.gate_proj.weight,
        inner.up_proj.weight,
        inner.down_proj.weight,
        second.epsilon,
        precision.compute,
    )
