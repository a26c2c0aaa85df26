"""Continuous batching: answers do not depend on who shares the batch, and nobody waits in vain."""

from __future__ import annotations

import random
import threading
from pathlib import Path

import pytest
import torch

from tests.numerics import tiny
from trainer import model
from trainer.generate import generate
from trainer.serving.engine import Engine, Full, Work
from trainer.serving.rows import Rows, RowsInUse
from trainer.serving.static_rows import StaticRows

END = [2, 5, 9, 11, 40, 41, 42, 43]
"""A random model rarely says one certain word, so it is given several to end with."""


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> model.LlamaModel:
    folder = tiny.write_model(tmp_path_factory.mktemp("served") / "model")
    found = model.load(folder, torch.device("cpu"))
    assert isinstance(found, model.LlamaModel)
    return found


def make_engine(network: model.LlamaModel, **changes: int) -> Engine:
    sizes = {"slots": 3, "queue": 100, **changes}
    return Engine(
        network,
        slots=sizes["slots"],
        context=400,
        queue=sizes["queue"],
        end_tokens=END,
        autocast=None,
    )


def works(count: int, ended: list[Work], seed: int = 3) -> list[Work]:
    draw = random.Random(seed)
    return [
        Work(
            request=f"r{number}",
            prompt=[draw.randrange(tiny.WORDS) for _ in range(draw.choice((1, 7, 40, 300)))],
            max_new_tokens=draw.randint(1, 24),
            began=lambda work: None,
            ended=ended.append,
        )
        for number in range(count)
    ]


def test_answers_are_those_of_each_request_alone(network: model.LlamaModel) -> None:
    ended: list[Work] = []
    engine, asked = make_engine(network), works(24, ended)
    thread = threading.Thread(target=engine.run)
    thread.start()
    for work in asked:
        engine.submit(work)
    engine.close()
    thread.join(timeout=120)
    assert sorted(work.request for work in ended) == sorted(work.request for work in asked)
    for work in asked:
        alone = generate(
            network, [work.prompt], max_new_tokens=work.max_new_tokens, batch=1, end_tokens=END,
            autocast=None,
        )[0]  # fmt: skip
        assert (work.tokens, work.stopped) == (alone.tokens, alone.stopped) or work.ties
    assert {work.stopped for work in asked} == {"end", "limit"}
    assert engine.counts.most_running == 3
    # Rows join and leave one by one: fewer steps than batches of three that wait for their longest.
    assert engine.counts.steps < sum(len(work.tokens) for work in asked)


def test_static_rows_write_the_same(network: model.LlamaModel) -> None:
    """The rows for GPUs, here without captured steps: joining, leaving and moving alike."""
    draw = random.Random(5)
    prompts = [[draw.randrange(tiny.WORDS) for _ in range(n)] for n in (60, 3, 140, 1, 30)]
    plain, static = Rows(network, 4), StaticRows(network, 4, 200, torch.float32)
    with torch.inference_mode():
        for rows in (plain, static):
            assert len(rows.add(prompts[:3])) == 3
        assert tokens_of(plain) == tokens_of(static)
        for rows in (plain, static):
            rows.drop(0)
            rows.add(prompts[3:])
        assert tokens_of(plain) == tokens_of(static)
        for rows in (plain, static):
            rows.drop(1)
            rows.drop(2)
        assert tokens_of(plain) == tokens_of(static)
        assert len(static) == 2


def tokens_of(rows: RowsInUse) -> list[list[int]]:
    """Eight steps."""
    return [[each.token for each in rows.step()] for _ in range(8)]


def test_a_full_queue_refuses(network: model.LlamaModel) -> None:
    ended: list[Work] = []
    engine = make_engine(network, slots=1, queue=2)
    asked = works(4, ended)
    for work in asked[:3]:  # one for the free row and two that wait
        engine.submit(work)
    with pytest.raises(Full):
        engine.submit(asked[3])
    engine.close()
    engine.run()
    assert ended == asked[:3]


def test_a_cancelled_request_leaves_at_once(network: model.LlamaModel) -> None:
    ended: list[Work] = []
    engine, asked = make_engine(network, slots=1), works(3, ended)
    for work in asked:
        engine.submit(work)
    engine.cancel(asked[0])
    engine.cancel(asked[2])
    engine.close()
    engine.run()
    assert [work.stopped for work in (asked[0], asked[2])] == ["cancelled", "cancelled"]
    assert asked[1].stopped in ("end", "limit")
    assert asked[0].tokens == asked[2].tokens == []


def test_a_model_that_fails_fails_every_request(
    network: model.LlamaModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[Work] = []
    engine, asked = make_engine(network), works(5, ended)
    for work in asked:
        engine.submit(work)

    def broken(*_: object) -> None:
        raise RuntimeError("no memory")

    monkeypatch.setattr(network, "step", broken)
    with pytest.raises(RuntimeError, match="no memory"):
        engine.run()
    assert sorted(work.request for work in ended) == sorted(work.request for work in asked)
    assert "failed" in {work.stopped for work in asked}
    with pytest.raises(Full):
        engine.submit(works(1, ended)[0])


def test_near_ties_are_told(tmp_path: Path) -> None:
    """With two equal rows in the head every choice of either is a tie."""
    folder = tiny.write_model(tmp_path / "model")
    found = model.load(folder, torch.device("cpu"))
    assert isinstance(found, model.LlamaModel)
    with torch.no_grad():
        found.head_VH.copy_(found.head_VH[:1].expand_as(found.head_VH))
    ended: list[Work] = []
    engine = Engine(found, slots=1, context=16, queue=1, end_tokens=[5], autocast=None)
    engine.submit(Work("r", [1, 2, 3], 4, lambda work: None, ended.append))
    engine.close()
    engine.run()
    assert ended[0].ties == [0, 1, 2, 3]


def test_the_cache_grows_past_its_first_chunk(network: model.LlamaModel) -> None:
    ended: list[Work] = []
    prompt = [number % tiny.WORDS for number in range(250)]
    work = Work("long", prompt, 40, lambda work: None, ended.append)
    engine = Engine(network, slots=2, context=300, queue=1, end_tokens=[10**6], autocast=None)
    engine.submit(work)
    engine.close()
    engine.run()
    alone = generate(
        network, [prompt], max_new_tokens=40, batch=1, end_tokens=[10**6], autocast=None
    )[0]
    assert work.tokens == alone.tokens
