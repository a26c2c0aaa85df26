"""Packed rows: cut whole, closed against each other, compiled or not, in every precision."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from tests.numerics import tiny, work
from trainer import head, model, packed
from trainer.batches import Document, collate, collate_packed, share
from trainer.cutting import cut_of, deal, rows_for
from trainer.errors import TrainerError
from trainer.objective import weighted_loss_sum
from trainer.precision import Precision

EXACT = Precision()
BF16 = torch.bfloat16


@given(
    counts=st.lists(st.integers(1, 12), min_size=1, max_size=4),
    longest=st.integers(8, 60),
    room=st.integers(0, 200),
    seed=st.integers(0, 99),
)
@settings(deadline=None, max_examples=60)
def test_rows_hold_every_document_once_and_keep_to_the_budget(
    counts: list[int], longest: int, room: int, seed: int
) -> None:
    drawn = tiny.draw_documents(sum(counts), seed=seed, longest=longest)
    updates = [[drawn.pop() for _ in range(count)] for count in counts]
    budget = longest + room
    recipe = tiny.train(microbatch=budget, packed=tiny.packed(compiled=True))
    cut = cut_of(recipe, updates, 0, 1)
    shapes = set()
    for documents in updates:
        batches = cut(share(documents, 0, 1))
        shapes |= {batch.ids_BT.shape for batch in batches}
        assert sum(len(batch.target_N) for batch in batches) == sum(
            document.target_count for document in documents
        )
        for batch in batches:
            assert batch.segments is not None
            assert sum(batch.segments.lengths) == batch.ids_BT.shape[1] <= budget
            real = {d.read_length for d in documents}
            assert max(batch.segments.lengths) <= max(real), "filling longer than any document"
    assert len(shapes) == 1, "blocks are compiled for one length"


def test_rows_are_nearly_equal_and_few() -> None:
    documents = share(tiny.draw_documents(256, longest=400), 0, 1)
    total = sum(document.read_length for document in documents)
    rows = rows_for([documents], budget=total // 4 + 300)
    assert rows.count == 4
    lengths = [sum(d.read_length for d in row) for row in deal(documents, 4)]
    assert max(lengths) - min(lengths) < 60
    assert rows.length - max(lengths) < 64


def test_a_document_over_the_budget_is_refused() -> None:
    with pytest.raises(TrainerError, match="longer than a microbatch of 20 tokens"):
        rows_for([[Document("d", tuple(range(30)), ((20, 30),), 1.0)]], 20)


def hidden(network: model.LlamaModel, documents: list[Document], fill: int | None) -> Tensor:
    batch = collate_packed(documents, fill)
    assert batch.segments is not None
    return network.packed(batch.ids_BT[0], batch.segments, EXACT)


def loaded(folder: Path) -> model.LlamaModel:
    network = model.load(folder, work.CPU)
    assert isinstance(network, model.LlamaModel)
    return network


def test_documents_do_not_see_each_other(model_folder: Path) -> None:
    network = loaded(model_folder)
    documents = tiny.draw_documents(4)
    before, place = hidden(network, documents, 200), documents[0].read_length
    other = Document("o", tuple(5 for _ in documents[1].tokens), documents[1].targets, 1.0)
    after = hidden(network, [documents[0], other, *documents[2:]], 200)
    changed = slice(place, place + other.read_length)
    assert not torch.equal(before[changed], after[changed])
    before[changed] = after[changed] = 0
    assert torch.equal(before, after)
    alone = network.hidden(collate(documents[:1]).ids_BT)[0]
    torch.testing.assert_close(before[:place], alone, rtol=1e-5, atol=1e-5)
    torch.autograd.backward(hidden(network, documents, None)[:place].sum())
    gradient = network.parameters()["model.embed_tokens.weight"].grad
    assert gradient is not None
    seen = set(documents[0].tokens[:place])
    rows = gradient.abs().sum(1).nonzero()[:, 0].tolist()
    assert set(rows) == seen, "a gradient reached another document's words"


def gradients(
    folder: Path,
    precision: Precision,
    *,
    rows: bool = True,
    compiled: bool = False,
    checkpointing: bool = False,
) -> tuple[float, Tensor]:
    """The loss of one batch, and all gradients in one vector."""
    network = loaded(folder)
    network.train(checkpointing=checkpointing, compiled=compiled)
    documents = tiny.draw_documents(12, seed=3)
    batch = collate_packed(documents, 512) if rows else collate(documents)
    loss = weighted_loss_sum(network, batch, precision, compiled=compiled)
    torch.autograd.backward(loss / 1000)
    found = [p.grad for p in network.parameters().values()]
    return loss.item(), torch.cat([g.flatten().double() for g in found if g is not None])


def distance(found: Tensor, exact: Tensor) -> float:
    return float((found - exact).norm() / exact.norm())


@pytest.mark.parametrize("dtype", [torch.float32, BF16])
def test_captured_blocks_equal_plain_ones(
    dtype: torch.dtype, model_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole of compiling but the making of kernels, which takes a minute of g++ here."""
    captured = packed.compiled("aot_eager"), head.compiled_slopes("aot_eager")
    precision = Precision(dtype, dtype)
    plain = gradients(model_folder, precision)
    monkeypatch.setattr(packed, "compiled", lambda: captured[0])
    monkeypatch.setattr(head, "compiled_slopes", lambda: captured[1])
    found = gradients(model_folder, precision, compiled=True)
    tolerance = 1e-6 if dtype == torch.float32 else 1e-2
    assert found[0] == pytest.approx(plain[0], rel=tolerance)
    assert distance(found[1], plain[1]) < tolerance


def test_compiled_kernels_equal_plain_ones(model_folder: Path) -> None:
    plain = gradients(model_folder, EXACT)
    found = gradients(model_folder, EXACT, compiled=True)
    assert found[0] == pytest.approx(plain[0], rel=1e-6)
    assert distance(found[1], plain[1]) < 1e-5


def test_recomputing_activations_changes_nothing(model_folder: Path) -> None:
    kept = gradients(model_folder, EXACT)
    again = gradients(model_folder, EXACT, checkpointing=True)
    assert kept[0] == again[0]
    assert torch.equal(kept[1], again[1])


PRECISIONS = {
    "rounded head": Precision(BF16),
    "wide head": Precision(BF16, head="wide"),
    "fp32 head": Precision(BF16, head="fp32"),
}


@pytest.mark.parametrize("name", PRECISIONS)
def test_no_precision_is_further_from_fp32_than_autocast_is(name: str, model_folder: Path) -> None:
    loss, exact = gradients(model_folder, EXACT, rows=False)
    rough_loss, rough = gradients(model_folder, Precision(BF16), rows=False)
    found_loss, found = gradients(model_folder, PRECISIONS[name])
    assert 0 < distance(found, exact) < 1.1 * distance(rough, exact)
    assert abs(found_loss - loss) < 1.1 * abs(rough_loss - loss) + 1e-4 * loss


def test_a_narrow_residual_stream_costs_a_stated_error(model_folder: Path) -> None:
    loss, exact = gradients(model_folder, EXACT)
    found_loss, found = gradients(model_folder, Precision(BF16, BF16, "wide"))
    assert found_loss == pytest.approx(loss, rel=2e-3)
    assert 1e-4 < distance(found, exact) < 2e-2


@pytest.mark.parametrize("chunk", [7, 4096])
def test_chunked_losses_equal_full_ones(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(head, "CHUNK", chunk)
    draw = torch.Generator().manual_seed(4)
    hidden_NH = torch.randn(30, 16, generator=draw, requires_grad=True)
    head_VH = torch.randn(50, 16, generator=draw, requires_grad=True)
    target_N = torch.randint(50, (30,), generator=draw)
    weight_N = torch.rand(30, generator=draw)
    full_N = torch.nn.functional.cross_entropy(hidden_NH @ head_VH.T, target_N, reduction="none")
    expected = torch.autograd.grad((full_N * weight_N).sum() * 0.3, (hidden_NH, head_VH))
    total = head.weighted_sum(hidden_NH, head_VH, target_N, weight_N, EXACT)
    found = torch.autograd.grad(total * 0.3, (hidden_NH, head_VH))
    torch.testing.assert_close(total, (full_N * weight_N).sum())
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(head.losses(hidden_NH, head_VH, target_N, EXACT), full_N)
