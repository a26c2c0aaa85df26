"""A tiny untrained Llama with a byte-wise tokenizer: for tests and first steps, in no time."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from trainer.seed import SeedModel
from trainer.tensors import Array

_SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
_HIDDEN, _INNER, _LAYERS, _HEADS, _KV_HEADS = 64, 128, 2, 4, 2
_SPREAD = 0.05


def tiny_model() -> SeedModel:
    """About 100 thousand parameters, the same on every machine and version of any library."""
    tokenizer, words = _tokenizer()
    shapes = _shapes(words)
    return SeedModel(shapes, lambda name: _draw(name, shapes[name]), _config(words), tokenizer, {})


def _shapes(words: int) -> dict[str, tuple[int, ...]]:
    head = _HIDDEN // _HEADS
    in_layer: dict[str, tuple[int, ...]] = {
        "self_attn.q_proj": (_HIDDEN, _HIDDEN),
        "self_attn.k_proj": (_KV_HEADS * head, _HIDDEN),
        "self_attn.v_proj": (_KV_HEADS * head, _HIDDEN),
        "self_attn.o_proj": (_HIDDEN, _HIDDEN),
        "mlp.gate_proj": (_INNER, _HIDDEN),
        "mlp.up_proj": (_INNER, _HIDDEN),
        "mlp.down_proj": (_HIDDEN, _INNER),
        "input_layernorm": (_HIDDEN,),
        "post_attention_layernorm": (_HIDDEN,),
    }
    shapes: dict[str, tuple[int, ...]] = {
        "model.embed_tokens.weight": (words, _HIDDEN),
        "model.norm.weight": (_HIDDEN,),
    }
    for layer in range(_LAYERS):
        for name, shape in in_layer.items():
            shapes[f"model.layers.{layer}.{name}.weight"] = shape
    return shapes


def _draw(name: str, shape: tuple[int, ...]) -> Array:
    """Norm gains are one; all else is drawn from Python's own generator, seeded by the name."""
    if len(shape) == 1:
        return np.ones(shape, np.float32)
    draw = random.Random(f"tiny {name}")
    size = int(np.prod(shape))
    numbers = [draw.gauss(0.0, _SPREAD) for _ in range(size)]
    return np.array(numbers, np.float32).reshape(shape)


def _config(words: int) -> dict[str, Any]:
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_act": "silu",
        "hidden_size": _HIDDEN,
        "intermediate_size": _INNER,
        "num_hidden_layers": _LAYERS,
        "num_attention_heads": _HEADS,
        "num_key_value_heads": _KV_HEADS,
        "head_dim": _HIDDEN // _HEADS,
        "max_position_embeddings": 4096,
        "rms_norm_eps": 1e-05,
        "rope_theta": 10000.0,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
        "vocab_size": words,
        "tie_word_embeddings": True,
        "attention_bias": False,
        "mlp_bias": False,
        "attention_dropout": 0.0,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "use_cache": True,
    }


def _tokenizer() -> tuple[bytes, int]:
    """(tokenizer.json, number of words): ChatML's control tokens, then one word a byte."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    words = [*_SPECIAL, *sorted(pre_tokenizers.ByteLevel.alphabet())]
    tokenizer = Tokenizer(models.BPE({word: place for place, word in enumerate(words)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(
        [AddedToken(word, special=True, normalized=False) for word in _SPECIAL]
    )
    return tokenizer.to_str(pretty=True).encode("utf-8"), len(words)
