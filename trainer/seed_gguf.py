"""Llama models in GGUF files (llama.cpp's format), quantised or not.

Shapes and rules: the GGUF specification and llama.cpp's conversion of Llama weights, undone.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import gguf
import numpy as np

from trainer.errors import TrainerError
from trainer.seed import SeedModel
from trainer.tensors import Array

_TOP = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
}
_IN_LAYER = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
}
_LAYER = re.compile(r"blk\.(\d+)\.(\w+)\.weight")
_CONTROL = 3
"""Token type of control tokens."""
_KNOWN_PRE_TOKENISERS = ("smollm", "gpt-2")


def open_gguf(path: Path, name: str) -> SeedModel:
    """The model in a GGUF file; `name` is what the receipt calls it. Raises TrainerError."""
    try:
        reader = gguf.GGUFReader(path)
    except (ValueError, OSError) as error:
        raise TrainerError(f"{path} is not a GGUF file: {error}") from None
    facts = _Facts(reader, path)
    if facts.get("general.architecture") != "llama":
        raise TrainerError(f"{path} holds a {facts.get('general.architecture')}, not a llama")
    sources = {transformers_name(tensor.name): tensor for tensor in reader.tensors}
    heads = {
        "q_proj": facts.get("llama.attention.head_count"),
        "k_proj": facts.get("llama.attention.head_count_kv"),
    }

    def values(parameter: str) -> Array:
        tensor = sources[parameter]
        weights: Array = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        weights = weights.astype(np.float32, copy=False)
        projection = parameter.split(".")[-2]
        return rotary_halves(weights, heads[projection]) if projection in heads else weights

    # GGUF lists dimensions innermost first.
    shapes = {
        parameter: tuple(int(size) for size in reversed(tensor.shape))
        for parameter, tensor in sources.items()
    }
    config = _config(facts, tied="lm_head.weight" not in sources)
    return SeedModel(shapes, values, config, _tokenizer(facts), {name: path})


def transformers_name(name: str) -> str:
    """A GGUF tensor's name in transformers. Raises TrainerError on one that Llama lacks."""
    top = name.removesuffix(".weight")
    if top in _TOP:
        return f"{_TOP[top]}.weight"
    found = _LAYER.fullmatch(name)
    if found is None or found[2] not in _IN_LAYER:
        raise TrainerError(f"the GGUF tensor {name} has no place in a Llama model")
    return f"model.layers.{found[1]}.{_IN_LAYER[found[2]]}.weight"


def rotary_halves(weights: Array, heads: int) -> Array:
    """Rows of a query or key projection, from rotary pairs side by side to half a head apart."""
    rows, columns = weights.shape
    pairs = weights.reshape(heads, rows // heads // 2, 2, columns)
    return np.ascontiguousarray(pairs.swapaxes(1, 2)).reshape(rows, columns)


class _Facts:
    """The file's metadata."""

    def __init__(self, reader: Any, path: Path) -> None:
        self._fields = reader.fields
        self._path = path

    def get(self, key: str, default: Any = None) -> Any:
        """A value. Raises TrainerError when it is missing and there is no default."""
        if key in self._fields:
            return self._fields[key].contents()
        if default is None:
            raise TrainerError(f"{self._path} does not say {key}")
        return default

    def texts(self, key: str) -> list[str]:
        """A list of texts, empty when there is none. Decoded part by part, as the reader's own
        `contents` is slow on long lists.
        """
        if key not in self._fields:
            return []
        field = self._fields[key]
        return [bytes(field.parts[place]).decode("utf-8") for place in field.data]

    def integers(self, key: str) -> list[int]:
        field = self._fields[key]
        return [int(field.parts[place][0]) for place in field.data]


def _config(facts: _Facts, *, tied: bool) -> dict[str, Any]:
    """transformers' config.json of a Llama."""
    hidden = facts.get("llama.embedding_length")
    heads = facts.get("llama.attention.head_count")
    theta = _shortest(facts.get("llama.rope.freq_base", 10000.0))
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_act": "silu",
        "hidden_size": hidden,
        "intermediate_size": facts.get("llama.feed_forward_length"),
        "num_hidden_layers": facts.get("llama.block_count"),
        "num_attention_heads": heads,
        "num_key_value_heads": facts.get("llama.attention.head_count_kv"),
        "head_dim": facts.get("llama.rope.dimension_count", hidden // heads),
        "max_position_embeddings": facts.get("llama.context_length"),
        "rms_norm_eps": _shortest(facts.get("llama.attention.layer_norm_rms_epsilon")),
        "rope_theta": theta,
        "rope_parameters": {"rope_type": "default", "rope_theta": theta},
        "vocab_size": len(facts.integers("tokenizer.ggml.token_type")),
        "tie_word_embeddings": tied,
        "attention_bias": False,
        "mlp_bias": False,
        "attention_dropout": 0.0,
        "bos_token_id": facts.get("tokenizer.ggml.bos_token_id"),
        "eos_token_id": facts.get("tokenizer.ggml.eos_token_id"),
        "use_cache": True,
    }


def _shortest(value: float) -> float:
    """The shortest decimal that is this float32: 1e-05 and not 9.999999747378752e-06."""
    return float(str(np.float32(value)))


def _tokenizer(facts: _Facts) -> bytes:
    """tokenizer.json: byte-level BPE with the file's own vocabulary, merges and control tokens.

    The pre-tokeniser is only named in a GGUF; SmolLM's splits digits one by one, also after
    white space. Raises TrainerError for one that is not known here.
    """
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    kind, splitter = facts.get("tokenizer.ggml.model"), facts.get("tokenizer.ggml.pre", "gpt-2")
    if kind != "gpt2" or splitter not in _KNOWN_PRE_TOKENISERS:
        raise TrainerError(f"the GGUF's tokenizer '{kind}' with '{splitter}' is not known here")
    words = facts.texts("tokenizer.ggml.tokens")
    merges = [pair.partition(" ")[::2] for pair in facts.texts("tokenizer.ggml.merges")]
    tokenizer = Tokenizer(models.BPE({word: place for place, word in enumerate(words)}, merges))
    bytewise = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    digits = [pre_tokenizers.Digits(individual_digits=True)] if splitter == "smollm" else []
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*digits, bytewise])
    tokenizer.decoder = decoders.ByteLevel()
    types = facts.integers("tokenizer.ggml.token_type")
    control = [word for word, kind in zip(words, types, strict=True) if kind == _CONTROL]
    tokenizer.add_special_tokens(
        [AddedToken(word, special=True, normalized=False) for word in control]
    )
    return tokenizer.to_str(pretty=True).encode("utf-8")
