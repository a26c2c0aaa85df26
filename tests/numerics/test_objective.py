"""A batched update by any number of ranks equals a plain calculation, document by document."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from tests.numerics import tiny, work
from tests.numerics.ranks_pool import run_alone, run_ranks
from trainer.batches import Document

UPDATES = 3
DOCUMENTS = 11  # does not divide by ranks or microbatches: partial ones everywhere


def updates() -> list[list[Document]]:
    documents = tiny.draw_documents(UPDATES * DOCUMENTS)
    return [documents[start : start + DOCUMENTS] for start in range(0, len(documents), DOCUMENTS)]


def plain_training(folder: Path) -> tuple[list[float], list[float], dict[str, np.ndarray]]:
    """One document at a time, full logits, torch's AdamW: losses, norms, parameters.

    Takes nothing from the trainer: the model is transformers'.
    """
    from transformers.models.llama.modeling_llama import LlamaForCausalLM

    network = LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32)
    named = dict(network.named_parameters())
    optimizer = torch.optim.AdamW(
        [
            {"params": [p for p in named.values() if p.ndim >= 2], "weight_decay": 0.1},
            {"params": [p for p in named.values() if p.ndim < 2], "weight_decay": 0.0},
        ],
        betas=(0.9, 0.95),
        eps=1e-4,
    )
    losses, norms = [], []
    for number, documents in enumerate(updates()):
        total = sum(d.weight * sum(b - a for a, b in d.targets) for d in documents)
        loss = torch.zeros(())
        for document in documents:
            logits = network(input_ids=torch.tensor([document.tokens])).logits[0]
            for start, end in document.targets:
                for position in range(start, end):
                    target = torch.tensor(document.tokens[position])
                    nll = F.cross_entropy(logits[position - 1], target)
                    loss = loss + document.weight * nll / total
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        norms.append(float(torch.nn.utils.clip_grad_norm_(named.values(), 0.5)))
        for group in optimizer.param_groups:
            group["lr"] = [0.005, 0.01, 0.0025][number]
        optimizer.step()
        losses.append(float(loss))
    return losses, norms, {name: p.detach().numpy() for name, p in named.items()}


@pytest.fixture(scope="module")
def plain(model_folder: Path) -> tuple[list[float], list[float], dict[str, np.ndarray]]:
    result: tuple[list[float], list[float], dict[str, np.ndarray]] = run_alone(
        plain_training, model_folder
    )
    return result


def recipe(workers: int, **changes: object):  # type: ignore[no-untyped-def]
    kind = "none" if workers == 1 else "dense"
    schedule = {"kind": "linear", "warmup_updates": 2, "floor": 0.25}
    return tiny.train(updates=UPDATES, exchange={"kind": kind}, schedule=schedule, **changes)


@pytest.mark.parametrize(
    ("workers", "microbatch", "reverse", "packed"),
    [
        (1, 3, False, None),
        (1, 100, False, None),
        (2, 4, False, None),
        (2, 4, True, None),
        (3, 2, False, None),
        (4, 1, True, None),
        (1, 40, False, tiny.packed()),
        (1, 1000, False, tiny.packed()),
        (2, 60, True, tiny.packed(head="wide")),
        (1, 130, False, tiny.packed(head="fp32")),
    ],
)
def test_batched_ranks_equal_plain_documents(
    model_folder: Path,
    plain: tuple[list[float], list[float], dict[str, np.ndarray]],
    workers: int,
    microbatch: int,
    reverse: bool,
    packed: dict[str, object] | None,
) -> None:
    losses, norms, parameters = plain
    changes = {} if packed is None else {"packed": packed}
    ranks = run_ranks(
        work.train,
        workers,
        model_folder,
        recipe(workers, microbatch=microbatch, **changes),
        updates(),
        reverse,
    )
    for rank in ranks:
        assert [r.loss for r in rank["records"]] == pytest.approx(losses, rel=2e-6)
        assert [r.grad_norm for r in rank["records"]] == pytest.approx(norms, rel=1e-5)
        for name, values in parameters.items():
            np.testing.assert_allclose(rank["parameters"][name], values, atol=3e-6, err_msg=name)
    assert len({rank["root"] for rank in ranks}) == 1
    assert min(norms) > 0.5, "clipping must have bitten for this test to prove it"


def test_ranks_share_out_the_loss_exactly(model_folder: Path) -> None:
    ranks = run_ranks(work.train, 3, model_folder, recipe(3), updates())
    for number, documents in enumerate(updates()):
        records = [rank["records"][number] for rank in ranks]
        total = sum(d.weight * d.target_count for d in documents)
        assert {record.weighted_targets for record in records} == {total}
        whole = sum(record.local_loss_sum for record in records) / total
        assert records[0].loss == pytest.approx(whole, rel=1e-12)
        assert sum(record.tokens for record in records) == sum(len(d.tokens) for d in documents)


def test_checkpointing_changes_nothing_but_memory(model_folder: Path) -> None:
    kept = run_alone(work.train, 0, 1, model_folder, recipe(1), updates())
    recomputed = run_alone(work.train, 0, 1, model_folder, recipe(1, checkpointing=True), updates())
    for name, values in kept["parameters"].items():
        np.testing.assert_allclose(recomputed["parameters"][name], values, atol=1e-6)


def test_bf16_autocast_stays_close_and_keeps_fp32_parameters(model_folder: Path) -> None:
    exact = run_alone(work.train, 0, 1, model_folder, recipe(1), updates())
    rough = run_alone(work.train, 0, 1, model_folder, recipe(1, autocast="bf16"), updates())
    losses = [[r.loss for r in run["records"]] for run in (exact, rough)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-2)
    assert losses[0] != losses[1]
    assert {values.dtype for values in rough["parameters"].values()} == {np.dtype("float32")}


def test_the_same_plan_gives_the_same_root_twice(model_folder: Path) -> None:
    first = run_alone(work.train, 0, 1, model_folder, recipe(1), updates())
    second = run_alone(work.train, 0, 1, model_folder, recipe(1), updates())
    assert first["root"] == second["root"]


def test_compressed_ranks_agree_on_the_root(model_folder: Path) -> None:
    compressed = tiny.train(updates=UPDATES, exchange=tiny.powersgd(dense_updates=1))
    ranks = run_ranks(work.train, 3, model_folder, compressed, updates())
    dense = run_ranks(work.train, 3, model_folder, recipe(3), updates())
    assert len({rank["root"] for rank in ranks}) == 1
    assert ranks[0]["root"] != dense[0]["root"]
    assert ranks[0]["records"][0].loss == dense[0]["records"][0].loss
