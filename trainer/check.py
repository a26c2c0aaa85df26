"""The task `check`: do the ranks hear each other, and does splitting an update change it?"""

from __future__ import annotations

import random
from functools import partial

import torch
from torch import Tensor, nn

from trainer import exchange, loop
from trainer.batches import Document, microbatches
from trainer.job import Job
from trainer.ranks import Rank, join
from trainer.receipts import write_receipt
from trainer.recipe import Check, Exchange, Optimizer, Schedule, Train
from trainer.state import State
from trainer.timers import Stopwatch
from trainer.update import AdamW

_WORDS, _HIDDEN = 23, 16
_VECTOR = 1000


class SmallNetwork(nn.Module):
    """A network of the same outline as a language model: each position sees those before it.

    float64, so that only the way an update is split and summed can show.
    """

    def __init__(self, generator: torch.Generator) -> None:
        super().__init__()
        self.embedding = nn.Parameter(_normal(generator, _WORDS, _HIDDEN))
        self.mixing = nn.Parameter(_normal(generator, _HIDDEN, _HIDDEN))
        self.gain = nn.Parameter(_normal(generator, _HIDDEN))

    def hidden(self, ids_BT: Tensor) -> Tensor:
        """Each position from the mean of the embeddings up to it."""
        embedded_BTH = self.embedding[ids_BT]
        counts_T1 = torch.arange(1, ids_BT.shape[1] + 1, device=ids_BT.device)[:, None]
        mean_BTH = embedded_BTH.cumsum(1) / counts_T1
        return torch.tanh(mean_BTH @ self.mixing) * self.gain

    @property
    def head_VH(self) -> Tensor:
        """Tied to the embedding."""
        return self.embedding

    def parameters(self) -> dict[str, nn.Parameter]:  # type: ignore[override]
        """By name, as trainer.model.Network has it."""
        return dict(self.named_parameters())


def _normal(generator: torch.Generator, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def draw_documents(seed: str) -> list[Document]:
    """A small problem: unequal lengths, unequal weights, several target spans."""
    draw = random.Random(f"check {seed}")
    documents = []
    for number in range(draw.randint(9, 15)):
        length = draw.randint(6, 30)
        tokens = tuple(draw.randrange(_WORDS) for _ in range(length))
        middle = draw.randint(2, length - 3)
        spans = ((1, 2), (middle, draw.randint(middle + 1, length)))
        documents.append(Document(f"check-{number}", tokens, spans, draw.choice((1.0, 3.0, 8.0))))
    return documents


def run(job: Job, recipe: Check) -> None:
    """Write this rank's receipt with what it saw; judging it is the reader's."""
    with join(job) as rank:
        talk = exchange.make(_exchange(rank), rank.workers, recipe.seed, {})
        together = updated(recipe, rank, talk)
        alone = updated(recipe, Rank(0, 1, rank.device), exchange.NoExchange())
        errors = [(together[name] - alone[name]).abs().max() for name in together]
        body = {
            "all_reduce_ok": _all_reduce_ok(rank, talk),
            "weighted_update_max_error": float(torch.stack(errors).max()),
            "workers_seen": int(talk.total(torch.ones(1, device=rank.device)).item()),
        }
        write_receipt(job, rank, body, inputs={})


def _exchange(rank: Rank) -> Exchange:
    return Exchange("none" if rank.workers == 1 else "dense")


def updated(recipe: Check, rank: Rank, talk: exchange.Exchange) -> dict[str, Tensor]:
    """The small network's parameters after one update, done as training does it."""
    generator = torch.Generator().manual_seed(17)
    network = SmallNetwork(generator).to(rank.device)
    training = _training(recipe, rank)
    state = State(network, AdamW(network.parameters(), training.optimizer), talk)
    cut = partial(microbatches, size=training.microbatch)
    inputs = loop.prepare_update(draw_documents(recipe.seed), rank, cut)
    loop.one_update(state, training, rank, inputs, Stopwatch(rank.synchronise), lambda: None)
    return {name: parameter.detach() for name, parameter in network.parameters().items()}


def _training(recipe: Check, rank: Rank) -> Train:
    return Train(
        task="train",
        device=recipe.device,
        threads=recipe.threads,
        seed=recipe.seed,
        arm="check",
        corpus="check",
        updates=1,
        microbatch=2,
        optimizer=Optimizer(lr=1e-2, beta1=0.9, beta2=0.99, epsilon=1e-6, weight_decay=0.1),
        schedule=Schedule("constant", 0, 0.0),
        clip_norm=0.5,
        autocast=None,
        checkpointing=False,
        exchange=_exchange(rank),
        preserve="weights",
    )


def _all_reduce_ok(rank: Rank, talk: exchange.Exchange) -> bool:
    """Rank r gives (r + 1) * 1..n; whole numbers, so the sum is known exactly."""
    base = torch.arange(1, _VECTOR + 1, dtype=torch.float64, device=rank.device)
    expected = base * (rank.workers * (rank.workers + 1) // 2)
    return bool(torch.equal(talk.total(base * (rank.rank + 1)), expected))
