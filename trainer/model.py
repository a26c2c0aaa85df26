"""Loading a causal language model, and what tasks need of it.

Shape suffixes: B documents, T new positions, S cached and new positions, H hidden size, V
vocabulary; in packed networks T positions of all documents.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import torch
from safetensors import safe_open
from torch import Tensor, nn

from trainer import packed
from trainer.attention import Segments
from trainer.cache import Cache
from trainer.contract import read_json
from trainer.errors import TrainerError
from trainer.llama import Llama, Shape
from trainer.precision import Precision


class Network(Protocol):
    """What the objective needs: hidden states, and the head as one matrix."""

    def hidden(self, ids_BT: Tensor) -> Tensor:
        """Last hidden states of right-padded documents, B×T×H, each position from itself and
        those before it (so padding needs no mask).
        """

    @property
    def head_VH(self) -> Tensor:
        """Logits of a hidden state h are `head_VH @ h`."""

    def parameters(self) -> Mapping[str, nn.Parameter]:
        """Every trained tensor once (a tied head under the embedding's name)."""


@runtime_checkable
class PackedNetwork(Network, Protocol):
    """A network that also takes documents without padding between them."""

    def packed(self, ids_T: Tensor, segments: Segments, precision: Precision) -> Tensor:
        """Last hidden states T×H, each position from its own document up to itself."""


class KeptRows(Protocol):
    """A cache of keys and values."""

    def keep(self, rows: Tensor) -> None:
        """Drop all documents but those at `rows`."""


class CausalModel(Network, Protocol):
    """A network that also reads step by step."""

    device: torch.device

    def read(self, ids_BT: Tensor, capacity: int) -> tuple[Tensor, KeptRows]:
        """Hidden states of right-padded prompts, and a cache for `capacity` positions."""

    def step(
        self, ids_B1: Tensor, positions_B1: Tensor, mask_BS: Tensor, cache: KeptRows
    ) -> Tensor:
        """Hidden states B×1×H of one new token a document, which goes behind the cached ones.

        `positions_B1` count real tokens; `mask_BS` is false where the cache holds padding.
        """

    def train(self, *, checkpointing: bool, compiled: bool = False) -> None:
        """Get ready for backward passes.

        With `checkpointing` they recompute activations; with `compiled` packed documents go
        through compiled blocks.
        """

    def eval(self) -> None:
        """Get ready for forward passes only."""


class LlamaModel:
    """A Llama on a device, in FP32."""

    def __init__(self, llama: Llama, device: torch.device, shape: Shape) -> None:
        self._llama = llama.to(device)
        self._parameters = dict(self._llama.named_parameters())
        self._blocks = packed.PLAIN
        self.device = device
        self.shape = shape

    def parameters(self) -> dict[str, nn.Parameter]:
        """Every trained tensor once, by its transformers name."""
        return dict(self._parameters)  # walking through all modules takes longer

    @property
    def head_VH(self) -> Tensor:
        """The head's matrix; the embedding's where they are tied."""
        return self._llama.head_VH

    def hidden(self, ids_BT: Tensor) -> Tensor:
        """Last hidden states of right-padded documents."""
        hidden: Tensor = self._llama(ids_BT)
        return hidden

    def read(self, ids_BT: Tensor, capacity: int) -> tuple[Tensor, Cache]:
        """Hidden states of right-padded prompts, and a cache for `capacity` positions."""
        cache = Cache(capacity)
        hidden: Tensor = self._llama(ids_BT, cache=cache)
        cache.advance(ids_BT.shape[1])
        return hidden, cache

    def step(
        self, ids_B1: Tensor, positions_B1: Tensor, mask_BS: Tensor, cache: KeptRows
    ) -> Tensor:
        """Hidden states of one new token a document."""
        assert isinstance(cache, Cache)
        hidden: Tensor = self._llama(ids_B1, positions_B1, mask_BS, cache)
        cache.advance(1)
        return hidden

    def packed(self, ids_T: Tensor, segments: Segments, precision: Precision) -> Tensor:
        """Last hidden states of packed documents."""
        return packed.hidden(
            self._llama,
            ids_T,
            segments,
            precision,
            blocks=self._blocks,
            checkpointing=self._llama.checkpointing,
        )

    def train(self, *, checkpointing: bool, compiled: bool = False) -> None:
        """Keep or recompute activations, in plain or compiled blocks."""
        self._llama.recompute_activations(checkpointing)
        self._blocks = packed.compiled() if compiled else packed.PLAIN

    def eval(self) -> None:
        """Nothing differs: a Llama has no dropout."""


def load(
    folder: Path, device: torch.device, progress: Callable[[], None] = lambda: None
) -> CausalModel:
    """The model in a folder of model.safetensors and config.json. Raises TrainerError.

    Plain Llamas run in this package's own code, others through transformers. No token is
    padding to the network: a padding row would silently lose its gradient. `progress` is called
    after every tensor.
    """
    config = read_json(folder / "config.json")
    shape = Shape.of(config)
    if shape is None:
        from trainer.hub_model import load_hub_model

        return load_hub_model(folder, config, device)
    with device:
        llama = Llama(shape)
    _fill(llama, folder / "model.safetensors", device, progress)
    return LlamaModel(llama, device, shape)


def _fill(llama: Llama, path: Path, device: torch.device, progress: Callable[[], None]) -> None:
    """Put a file's tensors into a network that was only allocated; they must fit exactly.

    One at a time and straight to the device: the host never holds a second copy.
    """
    named: dict[str, Any] = dict(llama.named_parameters())
    with torch.no_grad(), safe_open(path, framework="pt", device=str(device)) as tensors:
        if named.keys() != (held := set(tensors.keys())):
            odd = sorted(named.keys() ^ held)[:3]
            raise TrainerError(f"{path} and its config.json disagree about {', '.join(odd)}")
        for name, parameter in named.items():
            tensor = tensors.get_tensor(name)
            if parameter.shape != tensor.shape:
                raise TrainerError(f"{path}: {name} has the shape {tuple(tensor.shape)}")
            parameter.copy_(tensor)
            progress()
