"""Large waves with static buffers write what one prompt at a time writes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.numerics import tiny, work
from trainer import model
from trainer.generate import Answer, Replayed, generate
from trainer.generate_llama import Writer
from trainer.generate_static import Steps, step_size

PROMPTS = [document.tokens for document in tiny.draw_documents(45, seed=6, longest=150)]
END = (2, 40, 101, 17, 250, *range(60, 70))
LIMIT = 30


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Operations here are small: threads that wait for each other take most of the time."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def network(model_folder: Path) -> model.LlamaModel:
    found = model.load(model_folder, work.CPU)
    assert isinstance(found, model.LlamaModel)
    generator = torch.Generator().manual_seed(5)
    for name, parameter in found.parameters().items():
        if parameter.ndim == 2 and "embed" not in name:  # the tiny seed repeats its last token
            parameter.data.normal_(0, 0.25, generator=generator)
    return found


@pytest.fixture(scope="module")
def plain(network: model.LlamaModel) -> list[Answer]:
    return generate(
        network, PROMPTS, max_new_tokens=LIMIT, batch=7, end_tokens=END, autocast=None
    )  # fmt: skip


def replayed(network: model.LlamaModel, batch: int, autocast: str | None = None) -> list[Answer]:
    order = sorted(range(len(PROMPTS)), key=lambda place: -len(PROMPTS[place]))
    ticks: list[None] = []
    found: dict[int, Answer] = {}
    with torch.inference_mode():
        writer = Replayed(network, PROMPTS, LIMIT, batch, END, autocast, lambda: ticks.append(None))
        for start in range(0, len(order), writer.batch):
            places = order[start : start + writer.batch]
            answers = writer.answers([PROMPTS[place] for place in places])
            found.update(zip(places, answers, strict=True))
    assert len(ticks) >= LIMIT // 4
    return [found[place] for place in range(len(PROMPTS))]


def test_the_answers_are_worth_comparing(plain: list[Answer]) -> None:
    lengths = {len(answer.tokens) for answer in plain}
    assert {answer.stopped for answer in plain} == {"end", "limit"}
    assert len(lengths) > 12, "rows must end at different steps"
    assert len({token for answer in plain for token in answer.tokens}) > 50


@pytest.mark.parametrize("batch", [1, 13, 45])
def test_waves_write_what_plain_generation_writes(
    network: model.LlamaModel, plain: list[Answer], batch: int
) -> None:
    assert replayed(network, batch) == plain


def test_bf16_is_as_near_to_fp32_as_the_training_path_is(network: model.LlamaModel) -> None:
    prompts = [list(prompt) for prompt in PROMPTS if len(prompt) >= 40]
    lengths = torch.tensor([len(prompt) - 1 for prompt in prompts])
    ids = torch.zeros(len(prompts), int(lengths.max()), dtype=torch.int64)
    for row, prompt in enumerate(prompts):
        ids[row, : len(prompt) - 1] = torch.tensor(prompt[:-1])
    last = torch.tensor([prompt[-1] for prompt in prompts])
    with torch.inference_mode():
        writer = Writer(
            network.parameters(), network.shape, network.head_VH,
            dtype=torch.bfloat16, rows=len(prompts), capacity=192,
        )  # fmt: skip
        ours = writer.read(ids, lengths, 0), writer.step(last, lengths, 192)
        exact = (
            hidden_of_last(network, prompts, -1, None),
            hidden_of_last(network, prompts, 0, None),
        )
        plain = (
            hidden_of_last(network, prompts, -1, "bf16"),
            hidden_of_last(network, prompts, 0, "bf16"),
        )
    for found, wanted, trained in zip(ours, exact, plain, strict=True):
        distance = (found - wanted).norm() / wanted.norm()
        assert 0 < distance < 1.25 * (trained - wanted).norm() / wanted.norm()


def hidden_of_last(
    network: model.LlamaModel, prompts: list[list[int]], cut: int, autocast: str | None
) -> torch.Tensor:
    """Hidden states of each prompt's last token, one prompt at a time; `cut` -1 leaves it out."""
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast == "bf16"):
        return torch.stack(
            [network.hidden(torch.tensor([p[: len(p) + cut]]))[0, -1].float() for p in prompts]
        )


@given(st.integers(0, 4096), st.integers(1, 4096))
def test_steps_hold_every_row_that_writes_in_few_sizes(going: int, rows: int) -> None:
    going = min(going, rows)
    size = step_size(going, rows)
    assert going <= size <= rows
    assert (size == 0) == (going == 0)
    assert size in (0, rows) or size == 8 or (size & (size - 1)) == 0 or size % 3 == 0
    assert size in (0, rows) or size <= max(8, 3 * going // 2 + 1)


class Graph:
    """Stands in for a captured step: replays do what capturing noted."""

    noted: ClassVar[list[tuple[int, int]]] = []

    def __init__(self) -> None:
        self.step = (0, 0)

    def replay(self) -> None:
        Graph.noted.append((-self.step[0], self.step[1]))


@pytest.mark.parametrize("works", [True, False])
def test_a_size_is_captured_at_its_second_use_or_runs_directly(
    works: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ran: list[tuple[int, int]] = []
    Graph.noted = ran
    capturing: list[Graph] = []

    @contextmanager
    def capture(graph: Graph, pool: object) -> Iterator[None]:
        if not works:
            raise RuntimeError("not\npermitted")
        capturing.append(graph)
        yield
        capturing.pop()

    def step(rows: int, seen: int) -> None:
        if capturing:
            capturing[-1].step = (rows, seen)
        else:
            ran.append((rows, seen))

    monkeypatch.setattr(torch.cuda, "CUDAGraph", Graph)
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", lambda: (1, 1))
    monkeypatch.setattr(torch.cuda, "graph", capture)
    steps = Steps(torch.device("cuda"), step)
    for rows, seen in ((8, 64), (8, 64), (8, 64), (4, 64), (8, 128), (4, 64)):
        steps.run(rows, seen)
    replayed = [(8, 64), (-8, 64), (-8, 64), (4, 64), (8, 128), (-4, 64)]
    assert ran == (replayed if works else [(abs(rows), seen) for rows, seen in replayed])
    said = capsys.readouterr().err
    assert said == ("" if works else "trainer: steps are not captured: not permitted\n")


def test_nothing_asked_is_nothing_written(network: model.LlamaModel) -> None:
    assert generate(
        network, [], max_new_tokens=3, batch=None, end_tokens=END, autocast=None
    ) == []  # fmt: skip
