"""Batched generation and retention losses equal plain ones; models are compared exactly."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from safetensors.numpy import load_file, save_file

from tests.numerics import tiny, work
from trainer import model
from trainer.compare import distance
from trainer.errors import TrainerError
from trainer.evaluate import read_cases
from trainer.generate import Answer, generate
from trainer.retention import document_losses

PROMPTS = [document.tokens for document in tiny.draw_documents(17, seed=4)]
END = (2, 40, 101)


@pytest.fixture(scope="module")
def network(model_folder: Path) -> model.CausalModel:
    return model.load(model_folder, work.CPU)


def plain_answer(network: model.CausalModel, prompt: tuple[int, ...], limit: int) -> Answer:
    """One prompt, no cache: everything is read again for every token."""
    tokens = list(prompt)
    for _ in range(limit):
        hidden = network.hidden(torch.tensor([tokens]))[0, -1]
        best = int((network.head_VH @ hidden).argmax())
        if best in END:
            return Answer(tokens[len(prompt) :], "end")
        tokens.append(best)
    return Answer(tokens[len(prompt) :], "limit")


@pytest.fixture(scope="module")
def plain_answers(network: model.CausalModel) -> list[Answer]:
    with torch.inference_mode():
        return [plain_answer(network, prompt, 12) for prompt in PROMPTS]


@pytest.mark.parametrize("batch", [1, 4, 17, 50])
def test_generation_does_not_depend_on_the_batch(
    network: model.CausalModel, plain_answers: list[Answer], batch: int
) -> None:
    answers = generate(
        network, PROMPTS, max_new_tokens=12, batch=batch, end_tokens=END, autocast=None
    )
    assert answers == plain_answers


def test_answers_stop_in_both_ways(network: model.CausalModel) -> None:
    first = [
        generate(network, [prompt], max_new_tokens=4, batch=1, end_tokens=[2], autocast=None)[0]
        for prompt in PROMPTS
    ]
    third = first[0].tokens[2]
    answers = generate(
        network, PROMPTS, max_new_tokens=4, batch=5, end_tokens=[third], autocast=None
    )
    assert {answer.stopped for answer in answers} == {"end", "limit"}
    for answer, whole in zip(answers, first, strict=True):
        if answer.stopped == "limit":
            assert answer.tokens == whole.tokens and len(answer.tokens) == 4
        else:
            assert third not in answer.tokens
            assert [*answer.tokens, third] == whole.tokens[: len(answer.tokens) + 1]


def test_progress_counts_prompts(network: model.CausalModel) -> None:
    seen: list[int] = []
    generate(network, PROMPTS, max_new_tokens=1, batch=6, end_tokens=END, autocast=None,
             progress=seen.append)  # fmt: skip
    assert seen == [6, 12, 17]


def test_an_empty_prompt_is_an_error(network: model.CausalModel) -> None:
    with pytest.raises(ValueError, match="empty"):
        generate(network, [[]], max_new_tokens=1, batch=1, end_tokens=END, autocast=None)


def test_cases_with_anything_beside_the_prompt_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "test.cases.jsonl"
    for row in ({"id": "a", "tokens": [1], "answer": [2]}, {"id": "a", "tokens": []}):
        path.write_text(json.dumps(row) + "\n")
        with pytest.raises(TrainerError, match="line 1"):
            read_cases(path)


@pytest.mark.parametrize("batch", [1, 5])
def test_retention_losses_are_unweighted_means_over_targets(
    network: model.CausalModel, batch: int
) -> None:
    documents = tiny.draw_documents(13, seed=8)
    losses = document_losses(network, documents, batch=batch, autocast=None)
    assert [loss.id for loss in losses] == [document.id for document in documents]
    for document, loss in zip(documents, losses, strict=True):
        hidden = network.hidden(torch.tensor([document.tokens]))[0]
        positions = [p for start, end in document.targets for p in range(start, end)]
        logits = hidden[[p - 1 for p in positions]] @ network.head_VH.T
        expected = F.cross_entropy(logits, torch.tensor([document.tokens[p] for p in positions]))
        assert loss.targets == len(positions)
        assert loss.loss == pytest.approx(expected.item(), rel=1e-6)


def write_arrays(path: Path, **arrays: np.ndarray) -> Path:
    save_file(dict(arrays), path)
    return path


def test_distance_is_what_numpy_says(model_folder: Path, tmp_path: Path) -> None:
    ours = load_file(model_folder / "model.safetensors")
    draw = np.random.default_rng(3)
    theirs = {
        name: (array + 1e-3 * draw.standard_normal(array.shape)).astype(np.float32)
        for name, array in ours.items()
    }
    save_file(theirs, tmp_path / "theirs.safetensors")
    found, tensors = distance(model_folder / "model.safetensors", tmp_path / "theirs.safetensors")
    left, right = (
        np.concatenate([arrays[name].ravel() for name in sorted(ours)]).astype(np.float64)
        for arrays in (ours, theirs)
    )
    assert tensors == len(ours)
    expected = np.linalg.norm(left - right) / np.linalg.norm(right)
    assert found.relative_l2() == pytest.approx(expected, rel=1e-12)
    assert found.max_abs == np.abs(left - right).max()


def test_models_of_other_shapes_have_no_distance(tmp_path: Path) -> None:
    one = write_arrays(tmp_path / "one", a=np.ones((2, 3), np.float32))
    for other in ({"a": np.ones((3, 2), np.float32)}, {"b": np.ones((2, 3), np.float32)}):
        with pytest.raises(TrainerError, match="different names or shapes"):
            distance(one, write_arrays(tmp_path / "two", **other))
