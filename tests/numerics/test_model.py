"""The own Llama equals transformers', and both sides of the interface do the same."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.numerics import tiny, work
from trainer import model
from trainer.batches import collate
from trainer.contract import read_json
from trainer.errors import TrainerError
from trainer.generate import generate
from trainer.hub_model import load_hub_model
from trainer.objective import weighted_loss_sum
from trainer.precision import Precision


def variant(model_folder: Path, folder: Path, *, untied: bool = False, **changes: object) -> Path:
    """The tiny model with another configuration, and a head of its own if asked for."""
    folder.mkdir()
    config = read_json(model_folder / "config.json") | changes
    tensors = load_file(model_folder / "model.safetensors")
    if untied:
        config["tie_word_embeddings"] = False
        generator = torch.Generator().manual_seed(5)
        tensors["lm_head.weight"] = 0.1 * torch.randn(tiny.WORDS, 64, generator=generator)
    (folder / "config.json").write_text(json.dumps(config))
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    return folder


@pytest.mark.parametrize("untied", [False, True])
def test_losses_gradients_and_answers_equal_transformers(
    untied: bool, model_folder: Path, tmp_path: Path
) -> None:
    folder = variant(model_folder, tmp_path / "m", untied=untied, rope_theta=1000.0,
                     rope_parameters={"rope_type": "default", "rope_theta": 1000.0})  # fmt: skip
    own = model.load(folder, work.CPU)
    hub = load_hub_model(folder, read_json(folder / "config.json"), work.CPU)
    assert isinstance(own, model.LlamaModel)
    assert own.parameters().keys() == hub.parameters().keys()
    batch = collate(tiny.draw_documents(5))
    sums = []
    for network in (own, hub):
        network.train(checkpointing=False)
        total = weighted_loss_sum(network, batch, Precision())
        torch.autograd.backward(total)
        sums.append(total.item())
    assert sums[0] == pytest.approx(sums[1], rel=1e-6)
    for name, parameter in hub.parameters().items():
        found = own.parameters()[name].grad
        torch.testing.assert_close(found, parameter.grad, rtol=1e-3, atol=1e-4)
    prompts = [document.tokens for document in tiny.draw_documents(6)]
    written = [
        generate(network, prompts, max_new_tokens=8, batch=4, end_tokens=[2, 7], autocast=None)
        for network in (own, hub)
    ]
    assert written[0] == written[1]


def test_no_row_of_the_embedding_is_padding(model_folder: Path, tmp_path: Path) -> None:
    folder = variant(model_folder, tmp_path / "m", untied=True, pad_token_id=5)
    for network in (
        model.load(folder, work.CPU),
        load_hub_model(folder, read_json(folder / "config.json"), work.CPU),
    ):
        torch.autograd.backward(network.hidden(torch.tensor([[5, 6]])).sum())
        gradient = network.parameters()["model.embed_tokens.weight"].grad
        assert gradient is not None and gradient[5].abs().sum() > 0


def test_other_rotary_scaling_goes_to_transformers(model_folder: Path, tmp_path: Path) -> None:
    scaled = {"rope_type": "linear", "factor": 2.0, "rope_theta": 10000.0}
    folder = variant(model_folder, tmp_path / "m", rope_parameters=scaled)
    assert not isinstance(model.load(folder, work.CPU), model.LlamaModel)


def test_unknown_architectures_are_refused(model_folder: Path, tmp_path: Path) -> None:
    folder = variant(model_folder, tmp_path / "m", architectures=["Gemma3ForCausalLM"])
    with pytest.raises(TrainerError, match="Gemma3ForCausalLM"):
        model.load(folder, work.CPU)


def test_weights_that_do_not_fit_are_refused(model_folder: Path, tmp_path: Path) -> None:
    folder = variant(model_folder, tmp_path / "m", num_hidden_layers=3)
    with pytest.raises(TrainerError, match=r"disagree about model.layers.2"):
        model.load(folder, work.CPU)
    folder = variant(model_folder, tmp_path / "n", intermediate_size=96)
    with pytest.raises(TrainerError, match="has the shape"):
        model.load(folder, work.CPU)


def test_training_does_not_reach_the_model_file(model_folder: Path, tmp_path: Path) -> None:
    folder = variant(model_folder, tmp_path / "m")
    before = (folder / "model.safetensors").read_bytes()
    network = model.load(folder, work.CPU)
    with torch.no_grad():
        for parameter in network.parameters().values():
            parameter.add_(1)
    assert (folder / "model.safetensors").read_bytes() == before
    again = model.load(folder, work.CPU).parameters()["model.norm.weight"]
    np.testing.assert_array_equal(again.detach().numpy(), np.ones(64, np.float32))
