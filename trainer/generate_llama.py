"""A Llama that writes: prompts are read into buffers that never move, then one token a row a step.

The arithmetic is that of `trainer.llama` under the same autocast: FP32 residual stream, norms and
turns, matrices and attention in the compute type. Written apart from it because nothing here may
be allocated, copied to the host or decided by values, so that a GPU can replay a whole step.

Shape suffixes: B rows, T prompt positions, S cached positions, H hidden size, V vocabulary, h
heads, k key-value heads, g heads that share one, d size of a head.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from trainer.llama import Shape

_PREFIX = "model.layers."
_WHOLE = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
_STEP = [SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
"""cuDNN's kernels are left out: they plan anew for every shape, which takes longer than they
save here."""


@dataclass(frozen=True)
class _Layer:
    """One layer's weights: gains in FP32, matrices in the compute type."""

    input_layernorm: Tensor
    q_proj: Tensor
    k_proj: Tensor
    v_proj: Tensor
    o_proj: Tensor
    post_attention_layernorm: Tensor
    gate_proj: Tensor
    up_proj: Tensor
    down_proj: Tensor


class Writer:
    """Weights, and keys and values of `rows` rows of up to `capacity` positions."""

    def __init__(
        self,
        parameters: Mapping[str, Tensor],
        shape: Shape,
        head_VH: Tensor,
        *,
        dtype: torch.dtype,
        rows: int,
        capacity: int,
    ) -> None:
        self._shape, self._dtype = shape, dtype
        self._embedding_VH = parameters["model.embed_tokens.weight"].detach()
        self._head_VH = head_VH.detach()
        self._gain = parameters["model.norm.weight"].detach()
        self._layers = [_layer(parameters, place, dtype) for place in range(shape.layers)]
        self.device = self._embedding_VH.device
        self.capacity = capacity
        cache = (shape.layers, rows, shape.key_value_heads, capacity, shape.head)
        # Zeros: what a masked position holds is multiplied by nothing, and NaN would show.
        self._keys = torch.zeros(cache, dtype=dtype, device=self.device)
        self._values = torch.zeros(cache, dtype=dtype, device=self.device)
        self._groups = shape.heads // shape.key_value_heads
        exponents = torch.arange(0, shape.head, 2, device=self.device).float() / shape.head
        self._speed_d = 1.0 / shape.rope_theta**exponents

    def read(self, ids_BT: Tensor, length_B: Tensor, first: int) -> Tensor:
        """Read right-padded prompts into rows `first`, `first` + 1, ...; hidden states B×H of
        each prompt's last token.
        """
        rows, width = ids_BT.shape
        turns = self._turns(torch.arange(width, device=self.device)[None])
        x_BTH = F.embedding(ids_BT, self._embedding_VH)
        for place, layer in enumerate(self._layers):
            q_BhTd, k_BkTd, v_BkTd = self._heads(layer, x_BTH, turns)
            self._keys[place, first : first + rows, :, :width] = k_BkTd
            self._values[place, first : first + rows, :, :width] = v_BkTd
            if self._groups > 1:  # not every kernel shares heads itself
                k_BkTd = k_BkTd.repeat_interleave(self._groups, 1)
                v_BkTd = v_BkTd.repeat_interleave(self._groups, 1)
            with sdpa_kernel(_WHOLE):
                seen_BhTd = F.scaled_dot_product_attention(q_BhTd, k_BkTd, v_BkTd, is_causal=True)
            x_BTH = self._rest(layer, x_BTH, seen_BhTd)
        last = torch.arange(rows, device=self.device), length_B - 1
        return self._norm(x_BTH[last], self._gain)

    def step(self, token_B: Tensor, position_B: Tensor, seen: int) -> Tensor:
        """Read one token a row, which goes to the row's `position_B`; hidden states B×H.

        Only the first `seen` positions are looked at; all of `position_B` must be below it.
        """
        rows = token_B.shape[0]
        turns = self._turns(position_B[:, None])
        hidden_S = torch.arange(seen, device=self.device) > position_B[:, None]
        mask_BS = torch.zeros(rows, seen, dtype=self._dtype, device=self.device)
        mask_B11S = mask_BS.masked_fill_(hidden_S, float("-inf"))[:, None, None]
        place_Bk1d = position_B[:, None, None, None].expand(
            -1, self._shape.key_value_heads, 1, self._shape.head
        )
        x_B1H = F.embedding(token_B, self._embedding_VH)[:, None]
        for place, layer in enumerate(self._layers):
            q_Bh1d, k_Bk1d, v_Bk1d = self._heads(layer, x_B1H, turns)
            keys_BkSd, values_BkSd = self._keys[place, :rows], self._values[place, :rows]
            keys_BkSd.scatter_(2, place_Bk1d, k_Bk1d)
            values_BkSd.scatter_(2, place_Bk1d, v_Bk1d)
            # The query heads of a group stand where positions would.
            q_Bkgd = q_Bh1d.reshape(rows, -1, self._groups, self._shape.head)
            with sdpa_kernel(_STEP):
                seen_Bkgd = F.scaled_dot_product_attention(
                    q_Bkgd, keys_BkSd[:, :, :seen], values_BkSd[:, :, :seen], mask_B11S
                )
            x_B1H = self._rest(layer, x_B1H, seen_Bkgd.reshape(q_Bh1d.shape))
        return self._norm(x_B1H[:, 0], self._gain)

    def choose(self, hidden_BH: Tensor) -> Tensor:
        """The most likely next token of each row. FP32 logits decide."""
        return F.linear(hidden_BH.float(), self._head_VH).argmax(-1)

    def move(self, sources: Tensor, targets: Tensor) -> None:
        """Copy the keys and values of some rows over those of others."""
        for cache in (self._keys, self._values):
            for layer in cache:
                layer[targets] = layer[sources]

    def _heads(
        self, layer: _Layer, x_BTH: Tensor, turns: tuple[Tensor, Tensor]
    ) -> tuple[Tensor, Tensor, Tensor]:
        read_BTH = self._norm(x_BTH, layer.input_layernorm).to(self._dtype)
        split = (*read_BTH.shape[:2], -1, self._shape.head)
        q, k, v = (
            F.linear(read_BTH, matrix).view(split).transpose(1, 2)
            for matrix in (layer.q_proj, layer.k_proj, layer.v_proj)
        )
        return _turn(q, turns), _turn(k, turns), v

    def _rest(self, layer: _Layer, x_BTH: Tensor, seen_BhTd: Tensor) -> Tensor:
        """What follows attention in a layer."""
        x_BTH = x_BTH + F.linear(seen_BhTd.transpose(1, 2).flatten(2), layer.o_proj)
        read_BTH = self._norm(x_BTH, layer.post_attention_layernorm).to(self._dtype)
        gate_BTI = F.silu(F.linear(read_BTH, layer.gate_proj))
        return x_BTH + F.linear(gate_BTI * F.linear(read_BTH, layer.up_proj), layer.down_proj)

    def _norm(self, x: Tensor, gain: Tensor) -> Tensor:
        return F.rms_norm(x, gain.shape, gain, self._shape.norm_epsilon)

    def _turns(self, positions_BT: Tensor) -> tuple[Tensor, Tensor]:
        angles_BTd = positions_BT[..., None].float() * self._speed_d
        angles_B1Td = torch.cat((angles_BTd, angles_BTd), dim=-1)[:, None]
        return angles_B1Td.cos(), angles_B1Td.sin()


def _layer(parameters: Mapping[str, Tensor], place: int, dtype: torch.dtype) -> _Layer:
    found: dict[str, Tensor] = {}
    for name, tensor in parameters.items():
        if name.startswith(f"{_PREFIX}{place}."):
            kind = torch.float32 if tensor.ndim == 1 else dtype
            found[name.split(".")[-2]] = tensor.detach().to(kind)
    return _Layer(**found)


def _turn(x: Tensor, turns: tuple[Tensor, Tensor]) -> Tensor:
    cosine, sine = turns
    first, second = x.chunk(2, dim=-1)
    return (x * cosine + torch.cat((-second, first), dim=-1) * sine).to(x.dtype)


def row_bytes(shape: Shape, capacity: int, dtype: torch.dtype) -> int:
    """What a row's keys and values take."""
    return 2 * shape.layers * shape.key_value_heads * capacity * shape.head * dtype.itemsize


@contextmanager
def plain_kernels() -> Iterator[None]:
    """Without the sorting that deterministic mode puts before every indexed write.

    Here no place is written twice in one operation, so the plain kernels are deterministic too.
    """
    before = torch.get_deterministic_debug_mode()
    torch.set_deterministic_debug_mode("default")
    try:
        yield
    finally:
        torch.set_deterministic_debug_mode(before)
