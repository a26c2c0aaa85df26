"""The problem that every loop solves: one shape's random weights, and the same documents."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from trainer.batches import Document
from trainer.contract import write_json
from trainer.llama import Llama, Shape

SIZES: dict[str, dict[str, Any]] = {
    "1.7b": {
        "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 24,
        "num_attention_heads": 32, "num_key_value_heads": 32, "vocab_size": 49152,
    },
    "135m": {
        "hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 30,
        "num_attention_heads": 9, "num_key_value_heads": 3, "vocab_size": 49152,
    },
    "tiny": {
        "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 512,
    },
}  # fmt: skip
"""SmolLM2's two shapes, and one that a CPU trains at once."""


def config(size: str) -> dict[str, Any]:
    """transformers' config.json of a size."""
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_act": "silu",
        "max_position_embeddings": 8192,
        "rms_norm_eps": 1e-5,
        "rope_theta": 130000.0,
        "tie_word_embeddings": True,
        "attention_bias": False,
        "mlp_bias": False,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "use_cache": False,
        **SIZES[size],
    }


@dataclass(frozen=True)
class Problem:
    """What is trained on what."""

    size: str
    updates: list[list[Document]]
    """Each the documents of one update."""

    @property
    def tokens(self) -> float:
        """Real tokens an update, on average."""
        return sum(d.read_length for u in self.updates for d in u) / len(self.updates)


def draw(size: str, *, documents: int, updates: int) -> Problem:
    """The batched study's mixture: three quarters tasks of about 230 tokens with a short answer
    of weight 8, a quarter replay of very unequal lengths, about 67 thousand tokens for 256.
    """
    draw = random.Random("bench")
    words = SIZES[size]["vocab_size"]
    made = []
    for number in range(documents * updates):
        replay = number % 4 == 0
        length = min(1024, int(draw.lognormvariate(5.7, 0.5) if replay else draw.gauss(230, 30)))
        length = max(length, 60)
        answer = int(length * 0.6) if replay else draw.randint(15, 55)
        tokens = tuple(draw.randrange(words) for _ in range(length))
        spans = ((length - answer, length),)
        made.append(Document(f"d{number}", tokens, spans, 1.0 if replay else 8.0))
    return Problem(size, [made[i * documents : (i + 1) * documents] for i in range(updates)])


def write_model(size: str, folder: Path, device: torch.device) -> Path:
    """Random weights of a size, as a model folder: SmolLM2's own initial spread of 0.02."""
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    shape = Shape.of(config(size))
    assert shape is not None
    with torch.device(device):
        llama = Llama(shape)
    generator = torch.Generator(device).manual_seed(1)
    with torch.no_grad():
        for parameter in llama.parameters():
            if parameter.ndim == 1:
                parameter.fill_(1)
            else:
                parameter.normal_(0, 0.02, generator=generator)
    named = {name: p.detach().cpu() for name, p in llama.named_parameters()}
    save_file(named, folder / "model.safetensors", {"format": "pt"})
    write_json(folder / "config.json", config(size))
    return folder


def flops_a_token(size: str, parameters: int, length: float) -> float:
    """Forward and backward: six a parameter, and attention over half of `length` positions."""
    shape = SIZES[size]
    attention = 12 * shape["num_hidden_layers"] * shape["hidden_size"] * length / 2
    return float(6 * parameters + attention)
