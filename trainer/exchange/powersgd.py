"""PowerSGD (Vogels, Karimireddy and Jaggi 2019): low-rank factors instead of matrices.

Own implementation, keyed by parameter name, for one exchange after all microbatches.
Shape suffixes: n matrices of equal shape, r rows, c columns, k rank of the factors.

Gradients arrive as shares of a sum (not of a mean). With M_i a rank's share plus what it kept,
    P = orthogonal(sum_i M_i Q),  Q' = sum_i M_i^T P,  sent = P Q'^T,
and what rank i keeps for the next update is
    'averaged':  M_i - sent / workers          'local':  M_i - P (M_i^T P)^T.
In both, what was sent plus what all ranks keep equals what all ranks had; in 'averaged' also when
factors travel in BF16, since `sent` is made of the factors as they arrived.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor

from trainer.exchange.dense import sum_tensors, total
from trainer.exchange.orthogonal import orthogonalise
from trainer.exchange.protocol import Sent, all_reduce_bytes
from trainer.recipe import Exchange as Recipe


@dataclass
class _Group:
    """Matrices of one shape, worked on as one batch."""

    names: list[str]
    q_nck: Tensor
    """The right factors, warm from the update before."""
    kept_nrc: Tensor | None
    """What was not sent yet (error feedback), in the gradients' precision."""

    @property
    def rank(self) -> int:
        return self.q_nck.shape[-1]


class PowerSGD:
    """Compresses matrices that it makes small enough; all else is summed in full."""

    def __init__(self, recipe: Recipe, workers: int, seed: str) -> None:
        assert recipe.rank is not None and recipe.dense_updates is not None
        assert recipe.min_compression_rate is not None and recipe.epsilon is not None
        self._recipe = recipe
        self._dense_updates = recipe.dense_updates
        self._min_rate = recipe.min_compression_rate
        self._epsilon = recipe.epsilon
        self._local_residual = recipe.residual == "local"
        self._workers = workers
        self._seed = seed
        self._groups: list[_Group] | None = None
        self._groups_rank = 0
        self._restored: dict[str, Tensor] = {}

    def reduce(self, gradients: Mapping[str, Tensor], update: int) -> Sent:
        """Mutates `gradients` into sums over ranks: whole ones in the first `dense_updates`
        updates and for small tensors, low-rank ones otherwise. Keeps the difference.
        """
        names = sorted(gradients)
        if update <= self._dense_updates:
            travel = torch.bfloat16 if self._recipe.dense_precision == "bf16" else None
            return sum_tensors([gradients[name] for name in names], self._workers, travel)
        rank = self._rank_of(update)
        if self._groups is None or rank != self._groups_rank:
            self._groups = self._make_groups(gradients, rank, self._groups or [])
            self._groups_rank = rank
        compressed = {name for group in self._groups for name in group.names}
        rest = [gradients[name] for name in names if name not in compressed]
        sent = sum_tensors(rest, self._workers) if rest else Sent()
        return sent + self._reduce_matrices(self._groups, gradients)

    def settle(self, parameters: Mapping[str, Tensor], update: int) -> Sent:
        """Nothing is left to agree on."""
        return Sent()

    def _rank_of(self, update: int) -> int:
        """The rank of an update's factors: a higher one while warming up."""
        assert self._recipe.rank is not None
        if self._recipe.warmup_rank is None or self._recipe.warmup_updates is None:
            return self._recipe.rank
        warming = update <= self._dense_updates + self._recipe.warmup_updates
        return self._recipe.warmup_rank if warming else self._recipe.rank

    def total(self, values: Tensor) -> Tensor:
        """The sum over ranks of a few numbers."""
        return total(values)

    def state(self) -> dict[str, Tensor]:
        """Factors (`q.NAME`) and kept differences (`kept.NAME`), as matrices."""
        state = dict(self._restored)  # what no update has taken up yet
        for group in self._groups or []:
            for i, name in enumerate(group.names):
                state[f"q.{name}"] = group.q_nck[i]
                if group.kept_nrc is not None:
                    state[f"kept.{name}"] = group.kept_nrc[i]
        return state

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Takes effect at the next compressed update, when the gradients' shapes are known."""
        self._groups = None
        self._restored = dict(state)

    def report(self) -> dict[str, object]:
        """Nothing of its own."""
        return {}

    def _make_groups(
        self, gradients: Mapping[str, Tensor], rank: int, before: list[_Group]
    ) -> list[_Group]:
        """`before` are the groups of another rank: what they kept, and what of their factors
        fits, goes on.
        """
        for group in before:
            for i, name in enumerate(group.names):
                self._restored[f"q.{name}"] = group.q_nck[i]
        old = {tuple(group.names): group.kept_nrc for group in before}
        shapes = {
            name: _matrix_shape(gradient)
            for name, gradient in sorted(gradients.items())
            if gradient.ndim >= 2 and self._compresses(*_matrix_shape(gradient), rank)
        }
        names_of = _by_shape(shapes)
        if before and {tuple(names) for names in names_of} != old.keys():
            self._restored |= {
                f"kept.{name}": kept_rc
                for names, kept_nrc in old.items()
                if kept_nrc is not None
                for name, kept_rc in zip(names, kept_nrc, strict=True)
            }
            old = {}
        made = [
            self._make_group(names, gradients[names[0]], rank, old.get(tuple(names)))
            for names in names_of
        ]
        self._restored = {}
        return made

    def _make_group(
        self, names: list[str], like: Tensor, rank: int, kept_nrc: Tensor | None
    ) -> _Group:
        """Fresh factors and nothing kept, or what `restore` or another rank brought."""
        was, shape = self._restored, _matrix_shape(like)
        factors = [
            was[f"q.{name}"][:, :rank]
            if f"q.{name}" in was
            else self._first_factor(name, *shape, rank)
            for name in names
        ]
        if self._recipe.error_feedback and kept_nrc is None:
            kept_nrc = like.new_zeros(len(names), *shape)
            for kept_rc, name in zip(kept_nrc, names, strict=True):
                if f"kept.{name}" in was:
                    kept_rc.copy_(was[f"kept.{name}"])
        return _Group(names, torch.stack(factors).to(like), kept_nrc)

    def _compresses(self, rows: int, columns: int, rank: int) -> bool:
        rank = min(rank, rows, columns)
        return rows * columns >= self._min_rate * rank * (rows + columns)

    def _first_factor(self, name: str, rows: int, columns: int, rank: int) -> Tensor:
        """Normal deviates that depend on seed and name alone, so all ranks draw the same."""
        digest = hashlib.sha256(f"{self._seed}\n{name}".encode()).digest()
        generator = torch.Generator().manual_seed(int.from_bytes(digest[:8], "big") >> 1)
        rank = min(rank, rows, columns)
        return torch.randn(columns, rank, generator=generator, dtype=torch.float64)

    def _reduce_matrices(self, groups: list[_Group], gradients: Mapping[str, Tensor]) -> Sent:
        if not groups:
            return Sent()
        matrices = [self._take(group, gradients) for group in groups]
        left = _Factors(
            [
                (matrix_nrc.shape[0], matrix_nrc.shape[1], group.rank)
                for group, matrix_nrc in zip(groups, matrices, strict=True)
            ],
            like=matrices[0],
        )
        for group, matrix_nrc, p_nrk in zip(groups, matrices, left.views, strict=True):
            torch.bmm(matrix_nrc, group.q_nck, out=p_nrk)
        travel = torch.bfloat16 if self._recipe.factors == "bf16" else None
        sent = left.sum(self._workers, travel)
        bases = [orthogonalise(p_nrk, self._epsilon) for p_nrk in left.views]
        right = _Factors([tuple(group.q_nck.shape) for group in groups], like=matrices[0])
        for matrix_nrc, basis_nrk, q_nck in zip(matrices, bases, right.views, strict=True):
            torch.bmm(matrix_nrc.mT, basis_nrk, out=q_nck)
        own = [q_nck.clone() for q_nck in right.views] if self._local_residual else right.views
        sent += right.sum(self._workers, travel)
        for i, group in enumerate(groups):
            group.q_nck = right.views[i]
            self._give(group, gradients, bases[i], own[i])
        return sent

    def _take(self, group: _Group, gradients: Mapping[str, Tensor]) -> Tensor:
        """The matrices to send: this update's shares plus what was kept (in its buffer)."""
        if group.kept_nrc is None:
            return torch.stack([_matrix(gradients[name]) for name in group.names])
        given = [_matrix(gradients[name]) for name in group.names]
        torch._foreach_add_(list(group.kept_nrc.unbind()), given)
        return group.kept_nrc

    def _give(
        self, group: _Group, gradients: Mapping[str, Tensor], basis_nrk: Tensor, own_nck: Tensor
    ) -> None:
        """Write what was sent into the gradients, and keep the rest."""
        for i, name in enumerate(group.names):
            torch.mm(basis_nrk[i], group.q_nck[i].mT, out=_matrix(gradients[name]))
        if group.kept_nrc is None:
            return
        if self._local_residual:
            group.kept_nrc.baddbmm_(basis_nrk, own_nck.mT, alpha=-1)
        else:
            group.kept_nrc.baddbmm_(basis_nrk, group.q_nck.mT, alpha=-1 / self._workers)


class _Factors:
    """Factors of all groups in one flat buffer, so that one message carries them."""

    def __init__(self, shapes: list[tuple[int, ...]], like: Tensor) -> None:
        sizes = [int(torch.Size(shape).numel()) for shape in shapes]
        self._flat = like.new_empty(sum(sizes))
        self.views = [
            piece.view(shape)
            for piece, shape in zip(torch.split(self._flat, sizes), shapes, strict=True)
        ]

    def sum(self, workers: int, travel: torch.dtype | None) -> Sent:
        """Sum over ranks, in place; with `travel` rounded to that type and summed in it."""
        flat = self._flat if travel is None else self._flat.to(travel)
        dist.all_reduce(flat)
        if travel is not None:
            self._flat.copy_(flat)
        return all_reduce_bytes(flat.numel() * flat.element_size(), workers)


def _by_shape(shapes: Mapping[str, tuple[int, ...]]) -> list[list[str]]:
    """Names grouped by shape, in an order that is the same on every rank."""
    groups: dict[tuple[int, ...], list[str]] = {}
    for name in sorted(shapes):
        groups.setdefault(tuple(shapes[name]), []).append(name)
    return [groups[shape] for shape in sorted(groups)]


def _matrix_shape(tensor: Tensor) -> tuple[int, int]:
    return tensor.shape[0], tensor.numel() // tensor.shape[0]


def _matrix(tensor: Tensor) -> Tensor:
    """A gradient as a matrix: a view, so that writing to it writes to the gradient."""
    return tensor.view(_matrix_shape(tensor))
