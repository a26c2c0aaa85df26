"""Llama (Touvron et al. 2023) in plain torch, with transformers' parameter names.

Own code because importing transformers takes twice as long as importing torch, in every process.
Tests hold its logits against transformers'.

Shape suffixes: B documents, T new positions, S cached and new positions, H hidden size, V
vocabulary, h heads, k key-value heads, g heads that share a key-value head, d size of a head.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from trainer.cache import Cache

_DEFAULTS: Mapping[str, object] = {
    "hidden_act": "silu",
    "attention_bias": False,
    "mlp_bias": False,
    "attention_dropout": 0.0,
    "pretraining_tp": 1,
    "rope_scaling": None,
}
"""What this code does; a configuration that says otherwise is not for it."""


@dataclass(frozen=True)
class Shape:
    """A Llama's sizes, from transformers' config.json."""

    vocabulary: int
    hidden: int
    inner: int
    layers: int
    heads: int
    key_value_heads: int
    head: int
    norm_epsilon: float
    rope_theta: float
    tied: bool

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Shape | None:
        """The sizes in a configuration, or None when it asks for what is not written here."""
        rope = config.get("rope_parameters") or {"rope_theta": config.get("rope_theta", 10000.0)}
        plain = rope.get("rope_type", "default") == "default" and all(
            config.get(name, value) == value for name, value in _DEFAULTS.items()
        )
        if config.get("architectures") != ["LlamaForCausalLM"] or not plain:
            return None
        hidden, heads = config["hidden_size"], config["num_attention_heads"]
        return cls(
            vocabulary=config["vocab_size"],
            hidden=hidden,
            inner=config["intermediate_size"],
            layers=config["num_hidden_layers"],
            heads=heads,
            key_value_heads=config.get("num_key_value_heads") or heads,
            head=config.get("head_dim") or hidden // heads,
            norm_epsilon=config["rms_norm_eps"],
            rope_theta=float(rope["rope_theta"]),
            tied=bool(config.get("tie_word_embeddings", False)),
        )


class _Matrix(nn.Module):
    """A linear map without bias. Its weight is allocated and not initialised, as it is loaded."""

    def __init__(self, columns: int, rows: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(rows, columns))

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight)


class _Embedding(_Matrix):
    """A row for every word."""

    def forward(self, ids: Tensor) -> Tensor:
        return F.embedding(ids, self.weight)


class _Norm(nn.Module):
    """Root-mean-square norm with a gain, computed in float32."""

    def __init__(self, size: int, epsilon: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(size))
        self.epsilon = epsilon

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x.float(), self.weight.shape, self.weight, self.epsilon)


class _Attention(nn.Module):
    """Rotary self-attention with grouped key-value heads."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self._head = shape.head
        self._groups = shape.heads // shape.key_value_heads
        self.q_proj = _Matrix(shape.hidden, shape.heads * shape.head)
        self.k_proj = _Matrix(shape.hidden, shape.key_value_heads * shape.head)
        self.v_proj = _Matrix(shape.hidden, shape.key_value_heads * shape.head)
        self.o_proj = _Matrix(shape.heads * shape.head, shape.hidden)

    def forward(
        self,
        x_BTH: Tensor,
        turns: tuple[Tensor, Tensor],
        mask_B11S: Tensor | None,
        cache: Cache | None,
        layer: int,
    ) -> Tensor:
        split = (*x_BTH.shape[:2], -1, self._head)
        q_BhTd = turn(self.q_proj(x_BTH).view(split).transpose(1, 2), turns)
        k_BkSd = turn(self.k_proj(x_BTH).view(split).transpose(1, 2), turns)
        v_BkSd = self.v_proj(x_BTH).view(split).transpose(1, 2)
        if cache is not None:
            k_BkSd, v_BkSd = cache.extend(layer, k_BkSd, v_BkSd)
        if mask_B11S is None:
            out_BhTd = F.scaled_dot_product_attention(
                q_BhTd, k_BkSd, v_BkSd, is_causal=True, enable_gqa=self._groups > 1
            )
        else:  # one new position: the query heads of a group stand where positions would
            q_Bkgd = q_BhTd.reshape(q_BhTd.shape[0], -1, self._groups, self._head)
            out_Bkgd = F.scaled_dot_product_attention(q_Bkgd, k_BkSd, v_BkSd, mask_B11S)
            out_BhTd = out_Bkgd.reshape(q_BhTd.shape)
        out_BTH: Tensor = self.o_proj(out_BhTd.transpose(1, 2).flatten(2))
        return out_BTH


def turn(x: Tensor, turns: tuple[Tensor, Tensor]) -> Tensor:
    """Rotary position embedding (Su et al. 2021), pairs half a head apart, in float32."""
    cosine, sine = turns
    first, second = x.chunk(2, dim=-1)
    return (x * cosine + torch.cat((-second, first), dim=-1) * sine).to(x.dtype)


def _narrow(x: Tensor) -> Tensor:
    """What autocast would make of a linear map's input, made once for all maps that read it."""
    kind = x.device.type
    return x.to(torch.get_autocast_dtype(kind)) if torch.is_autocast_enabled(kind) else x


class _Inner(nn.Module):
    """SwiGLU (Shazeer 2020)."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.gate_proj = _Matrix(shape.hidden, shape.inner)
        self.up_proj = _Matrix(shape.hidden, shape.inner)
        self.down_proj = _Matrix(shape.inner, shape.hidden)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))
        return out


class Layer(nn.Module):
    """Attention, then the inner network, each beside a residual stream."""

    def __init__(self, shape: Shape, place: int) -> None:
        super().__init__()
        self._place = place
        self.input_layernorm = _Norm(shape.hidden, shape.norm_epsilon)
        self.self_attn = _Attention(shape)
        self.post_attention_layernorm = _Norm(shape.hidden, shape.norm_epsilon)
        self.mlp = _Inner(shape)

    def forward(
        self,
        x: Tensor,
        turns: tuple[Tensor, Tensor],
        mask_B11S: Tensor | None,
        cache: Cache | None,
    ) -> Tensor:
        """The residual stream with what this layer adds to it, in its own shape."""
        read = _narrow(self.input_layernorm(x))
        x = x + self.self_attn(read, turns, mask_B11S, cache, self._place)
        out: Tensor = x + self.mlp(_narrow(self.post_attention_layernorm(x)))
        return out


class _Body(nn.Module):
    """Everything but the head."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.embed_tokens = _Embedding(shape.hidden, shape.vocabulary)
        self.layers = nn.ModuleList(Layer(shape, place) for place in range(shape.layers))
        self.norm = _Norm(shape.hidden, shape.norm_epsilon)


class Llama(nn.Module):
    """A causal language model; its head is the embedding where they are tied."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self._shape = shape
        self.checkpointing = False
        self.model = _Body(shape)
        if not shape.tied:
            self.lm_head = _Matrix(shape.hidden, shape.vocabulary)

    @property
    def head_VH(self) -> Tensor:
        """Logits of a hidden state h are `head_VH @ h`."""
        return self.model.embed_tokens.weight if self._shape.tied else self.lm_head.weight

    def recompute_activations(self, on: bool) -> None:
        """Whether the backward pass computes each layer again instead of keeping it."""
        self.checkpointing = on

    def forward(
        self,
        ids_BT: Tensor,
        positions_BT: Tensor | None = None,
        mask_BS: Tensor | None = None,
        cache: Cache | None = None,
    ) -> Tensor:
        """Last hidden states, B×T×H.

        Without `mask_BS` every position sees itself and those before it in `ids_BT`; with it,
        each new position sees all of S where the mask is true (so T must be 1).
        """
        if positions_BT is None:
            positions_BT = torch.arange(ids_BT.shape[1], device=ids_BT.device)[None]
        turns = self.turns(positions_BT)
        mask_B11S = None if mask_BS is None else mask_BS[:, None, None, :]
        x_BTH = self.model.embed_tokens(ids_BT)
        for layer in self.model.layers:
            if self.checkpointing and torch.is_grad_enabled():
                x_BTH = checkpoint(layer, x_BTH, turns, mask_B11S, cache, use_reentrant=False)
            else:
                x_BTH = layer(x_BTH, turns, mask_B11S, cache)
        hidden: Tensor = self.model.norm(x_BTH)
        return hidden

    def turns(self, positions_BT: Tensor) -> tuple[Tensor, Tensor]:
        """Cosine and sine of every position's angles, float32, B×1×T×d (over all heads)."""
        device = positions_BT.device
        exponents = torch.arange(0, self._shape.head, 2, device=device).float() / self._shape.head
        angles_BTd = positions_BT[..., None].float() * (1.0 / self._shape.rope_theta**exponents)
        angles_B1Td = torch.cat((angles_BTd, angles_BTd), dim=-1)[:, None]
        return angles_B1Td.cos(), angles_B1Td.sin()
