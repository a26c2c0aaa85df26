"""Orthonormal columns come out whatever goes in."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from trainer.exchange.orthogonal import orthogonalise


def draw(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(3), dtype=dtype)


def dependent() -> Tensor:
    matrix = draw(2, 50, 6)
    matrix[..., 3] = 2 * matrix[..., 1]
    return matrix


def graded(spread: float) -> Tensor:
    """Columns nearly parallel: condition number about `spread`."""
    left, _ = torch.linalg.qr(draw(1, 60, 8, dtype=torch.float64))
    right, _ = torch.linalg.qr(draw(8, 8, dtype=torch.float64))
    values = torch.logspace(0, -torch.log10(torch.tensor(spread)).item(), 8, dtype=torch.float64)
    made: Tensor = ((left * values) @ right).float()
    return made


CASES = {
    "plain": draw(3, 40, 5),
    "square": draw(2, 7, 7),
    "one column": draw(2, 9, 1),
    "dependent columns": dependent(),
    "zero": torch.zeros(2, 20, 4),
    "zero column": torch.cat([draw(1, 20, 3), torch.zeros(1, 20, 1)], -1),
    "zero rows": torch.cat([draw(1, 5, 3), torch.zeros(1, 30, 3)], 1),
    "rank one": draw(1, 30, 1) @ draw(1, 1, 6),
    "condition 1e3": graded(1e3),
    "condition 1e6": graded(1e6),
    "condition 1e12": graded(1e12),
    "tiny": draw(1, 30, 4) * 1e-30,
    "huge": draw(1, 30, 4) * 1e30,
    "uneven": draw(1, 30, 4) * torch.tensor([1.0, 1e-12, 1e12, 1e-25]),
    "one of a batch": torch.stack([draw(20, 4), torch.zeros(20, 4)]),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("epsilon", [0.0, 1e-8])
def test_columns_are_orthonormal(name: str, epsilon: float) -> None:
    given = CASES[name]
    done = orthogonalise(given.clone(), epsilon)
    eye = torch.eye(given.shape[-1]).expand(given.shape[0], -1, -1)
    torch.testing.assert_close(done.mT @ done, eye, rtol=0, atol=2e-5)


@pytest.mark.parametrize("name", ["plain", "square", "dependent columns", "rank one",
                                  "zero rows", "condition 1e3", "uneven"])  # fmt: skip
def test_the_span_is_kept(name: str) -> None:
    given = CASES[name].double()
    given = given / given.norm(dim=-2, keepdim=True).clamp_min(1e-300)
    done = orthogonalise(CASES[name].clone(), 0.0).double()
    torch.testing.assert_close(done @ (done.mT @ given), given, rtol=0, atol=1e-5)


def test_float64_is_orthonormal_to_float64() -> None:
    done = orthogonalise(draw(2, 300, 20, dtype=torch.float64), 1e-8)
    eye = torch.eye(20, dtype=torch.float64).expand(2, -1, -1)
    torch.testing.assert_close(done.mT @ done, eye, rtol=0, atol=1e-14)


@settings(deadline=None, max_examples=60)
@given(
    rows=st.integers(1, 24),
    columns=st.integers(1, 24),
    rank=st.integers(0, 5),
    scale=st.sampled_from([1e-20, 1.0, 1e15]),
    seed=st.integers(0, 1000),
)
def test_any_matrix_of_low_rank(
    rows: int, columns: int, rank: int, scale: float, seed: int
) -> None:
    columns = min(rows, columns)
    generator = torch.Generator().manual_seed(seed)
    left = torch.randn(1, rows, rank, generator=generator)
    done = orthogonalise(scale * left @ torch.randn(1, rank, columns, generator=generator), 1e-8)
    torch.testing.assert_close(done.mT @ done, torch.eye(columns)[None], rtol=0, atol=2e-5)
