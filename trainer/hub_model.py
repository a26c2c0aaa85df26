"""Other architectures, through transformers. Slower to import; the same interface."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from trainer.errors import TrainerError
from trainer.model import KeptRows

PLAIN_HEADS = (
    "LlamaForCausalLM",
    "MistralForCausalLM",
    "Qwen2ForCausalLM",
    "Qwen3ForCausalLM",
)
"""Architectures whose logits are the last hidden state times one matrix, and nothing more."""


class _KeptRows:
    """A transformers cache, seen as `trainer.model.KeptRows`."""

    def __init__(self, cache: Any) -> None:
        self.cache = cache

    def keep(self, rows: Tensor) -> None:
        """Drop all documents but those at `rows`."""
        self.cache.batch_select_indices(rows)


class HubModel:
    """A transformers model on a device, in FP32, with torch's attention."""

    def __init__(self, model: Any, device: torch.device) -> None:
        self._model = model.to(device)
        self.device = device
        # transformers renames `past_key_values` to `cache`; releases differ.
        names = inspect.signature(model.base_model.forward).parameters
        self._cache_name = "cache" if "cache" in names else "past_key_values"

    def parameters(self) -> dict[str, nn.Parameter]:
        """Every trained tensor once."""
        return dict(self._model.named_parameters())

    @property
    def head_VH(self) -> Tensor:
        """The head's matrix; the embedding's where they are tied."""
        head: Tensor = self._model.get_output_embeddings().weight
        return head

    def hidden(self, ids_BT: Tensor) -> Tensor:
        """Last hidden states of right-padded documents."""
        hidden: Tensor = self._model.base_model(input_ids=ids_BT, use_cache=False)[0]
        return hidden

    def read(self, ids_BT: Tensor, capacity: int) -> tuple[Tensor, _KeptRows]:
        """Hidden states of right-padded prompts, and a cache, which grows as it must."""
        out = self._model.base_model(input_ids=ids_BT, use_cache=True)
        return out.last_hidden_state, _KeptRows(getattr(out, self._cache_name))

    def step(
        self, ids_B1: Tensor, positions_B1: Tensor, mask_BS: Tensor, cache: KeptRows
    ) -> Tensor:
        """Hidden states of one new token a document."""
        assert isinstance(cache, _KeptRows)
        out = self._model.base_model(
            input_ids=ids_B1,
            attention_mask=mask_BS,
            position_ids=positions_B1,
            use_cache=True,
            **{self._cache_name: cache.cache},
        )
        cache.cache = getattr(out, self._cache_name)
        hidden: Tensor = out.last_hidden_state
        return hidden

    def train(self, *, checkpointing: bool, compiled: bool = False) -> None:
        """Get ready for backward passes. Nothing here is compiled."""
        self._model.train()
        if checkpointing:
            self._model.gradient_checkpointing_enable({"use_reentrant": False})

    def eval(self) -> None:
        """Get ready for forward passes only."""
        self._model.eval()


def load_hub_model(folder: Path, config: Mapping[str, Any], device: torch.device) -> HubModel:
    """The model in a folder, by transformers. Raises TrainerError on an unknown architecture."""
    names = config.get("architectures")
    if not isinstance(names, list) or len(names) != 1 or names[0] not in PLAIN_HEADS:
        raise TrainerError(f"{folder}/config.json names the architecture {names}, not known here")
    from transformers import AutoConfig, AutoModelForCausalLM
    from transformers.utils import logging

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    settings = AutoConfig.from_pretrained(folder)
    settings.pad_token_id = None
    model = AutoModelForCausalLM.from_pretrained(
        folder, config=settings, dtype=torch.float32, attn_implementation="sdpa"
    )
    with torch.no_grad():  # off the mapped file, which training must not share
        for parameter in model.parameters():
            parameter.data = parameter.data.clone(memory_format=torch.contiguous_format)
    return HubModel(model, device)
