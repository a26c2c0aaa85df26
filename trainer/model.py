"""Loading a causal language model, and the two things that a task needs of it.

Shape suffixes: B documents, T positions, H hidden size, V vocabulary, N target positions.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from trainer.errors import TrainerError


class Network(Protocol):
    """What the objective needs: hidden states, and the head as one matrix."""

    def hidden(self, ids_BT: Tensor) -> Tensor:
        """Last hidden states, B×T×H, each position from itself and those before it."""

    @property
    def head_VH(self) -> Tensor:
        """Logits of a hidden state h are `head_VH @ h`."""

    def parameters(self) -> Mapping[str, nn.Parameter]:
        """Every trained tensor once (a tied head under the embedding's name)."""


class CausalModel:
    """A transformers model whose head is a plain matrix, in FP32, with PyTorch's attention."""

    def __init__(self, model: Any, device: torch.device) -> None:
        self._model = model.to(device)
        self.device = device
        self._cache_field = "cache" if _accepts_cache(model) else "past_key_values"

    def parameters(self) -> dict[str, nn.Parameter]:
        """Every trained tensor once, by its transformers name."""
        return dict(self._model.named_parameters())

    @property
    def head_VH(self) -> Tensor:
        """The head's matrix; the embedding's where they are tied."""
        head: Tensor = self._model.get_output_embeddings().weight
        return head

    def hidden(self, ids_BT: Tensor) -> Tensor:
        """Last hidden states of right-padded documents."""
        # Padding comes after every real token, so causality alone keeps it out.
        hidden: Tensor = self._model.base_model(input_ids=ids_BT, use_cache=False)[0]
        return hidden

    def extend(
        self, ids_BT: Tensor, mask_BS: Tensor, positions_BT: Tensor, cache: Any
    ) -> tuple[Tensor, Any]:
        """Hidden states of new tokens behind cached ones, and the longer cache.

        `mask_BS` covers cached and new positions: 1 for real ones, 0 for left padding.
        """
        out = self._model.base_model(
            input_ids=ids_BT,
            attention_mask=mask_BS,
            position_ids=positions_BT,
            use_cache=True,
            **({} if cache is None else {self._cache_field: cache}),
        )
        return out.last_hidden_state, getattr(out, self._cache_field)

    def train(self, *, checkpointing: bool) -> None:
        """Get ready for backward passes; with `checkpointing` they recompute activations."""
        self._model.train()
        if checkpointing:
            self._model.gradient_checkpointing_enable({"use_reentrant": False})

    def eval(self) -> None:
        """Get ready for forward passes only."""
        self._model.eval()


def _accepts_cache(model: Any) -> bool:
    """transformers renamed the argument `past_key_values` to `cache` between 5.17 and 5.24."""
    import inspect

    return "cache" in inspect.signature(model.base_model.forward).parameters


def load(folder: Path, device: torch.device) -> CausalModel:
    """The model in a folder of model.safetensors and config.json. Raises TrainerError.

    No token is padding to the network: a padding row would silently lose its gradient.
    """
    config_value = json.loads((folder / "config.json").read_text())
    names = config_value.get("architectures") or []
    if names not in (["LlamaForCausalLM"],):
        raise TrainerError(f"{folder}/config.json names {names}; only LlamaForCausalLM is known")
    # These two modules alone: the package's auto classes take seconds longer to import.
    from transformers.models.llama.configuration_llama import LlamaConfig
    from transformers.models.llama.modeling_llama import LlamaForCausalLM
    from transformers.utils import logging

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    config = LlamaConfig.from_pretrained(folder)
    config.pad_token_id = None
    model = LlamaForCausalLM.from_pretrained(
        folder, config=config, dtype=torch.float32, attn_implementation="sdpa"
    )
    with torch.no_grad():  # off the mapped file, which training must not share
        for parameter in model.parameters():
            parameter.data = parameter.data.clone(memory_format=torch.contiguous_format)
    return CausalModel(model, device)
