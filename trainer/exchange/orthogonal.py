"""Orthonormal columns for tall matrices of any rank.

Shape suffixes: n matrices, r rows, k columns (k at most r).
"""

from __future__ import annotations

import torch
from torch import Tensor

_PASSES = 3


def orthogonalise(matrices_nrk: Tensor, epsilon: float) -> Tensor:
    """Matrices with orthonormal columns that span at least what the given columns span.

    Columns are divided by their largest entry plus `epsilon`, which guards that division, and
    then by their norm, so that `epsilon` does not bend the result. Then Cholesky-QR, three
    times, the first with a shifted Gram matrix (Fukaya et al. 2020): good to full precision for
    all but nearly dependent columns. Matrices that it leaves imperfect (dependent or zero
    columns) go through Householder QR, which fills the missing directions with arbitrary ones,
    the same on every rank.
    """
    scaled_nrk = _unit_columns(matrices_nrk, epsilon)
    done_nrk = _cholesky_qr(scaled_nrk)
    identity_kk = torch.eye(done_nrk.shape[-1], dtype=done_nrk.dtype, device=done_nrk.device)
    error_n = (done_nrk.mT @ done_nrk - identity_kk).abs().amax((-2, -1))
    tolerance = torch.finfo(done_nrk.dtype).eps * done_nrk.shape[-2] ** 0.5 * 8
    imperfect_n = ~(error_n <= tolerance)  # true for NaN as well
    if bool(imperfect_n.any()):
        done_nrk[imperfect_n] = torch.linalg.qr(scaled_nrk[imperfect_n]).Q
    return done_nrk


def _unit_columns(matrices_nrk: Tensor, epsilon: float) -> Tensor:
    """Columns of norm one, or zero where they are zero. Scaled first, so squares stay in range."""
    peak_n1k = matrices_nrk.abs().amax(-2, keepdim=True)
    tiny = torch.finfo(matrices_nrk.dtype).tiny
    ranged_nrk = matrices_nrk / (peak_n1k + max(epsilon, tiny))
    norm_n1k = torch.linalg.vector_norm(ranged_nrk, dim=-2, keepdim=True)
    unit_nrk: Tensor = ranged_nrk / norm_n1k.clamp_min(tiny)
    return unit_nrk


def _cholesky_qr(columns_nrk: Tensor) -> Tensor:
    """Shifted, then plain Cholesky-QR. Where a factorisation fails the result is not finite or
    not orthonormal, which the caller looks for.
    """
    shift = 8 * torch.finfo(columns_nrk.dtype).eps
    for turn in range(_PASSES):
        gram_nkk = columns_nrk.mT @ columns_nrk
        if turn == 0:
            gram_nkk.diagonal(dim1=-2, dim2=-1).add_(shift)
        lower_nkk = torch.linalg.cholesky_ex(gram_nkk).L
        solved_nrk: Tensor = torch.linalg.solve_triangular(
            lower_nkk.mT, columns_nrk, upper=True, left=False
        )
        columns_nrk = solved_nrk
    return columns_nrk
