"""One replica under load beside plain transformers, same weights and prompts, one run.

python -m bench.serving --out result.json [--shape 135m|1.7b|tiny | --model DIR] [--device cuda]

The replica is the real process (trainer/launch, task serve) and the client the real one over
loopback, closed loop. Beside it, in this process, Hugging Face generate as a server without
continuous batching would run it: one request after another, and in fixed batches as large as the
concurrency, in the order of arrival. Everything greedy and FP32. Requests want different numbers
of tokens, as answers do. Prints a table; a difference of tokens counts as a near tie where the
replica said that the two best tokens were.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import random
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from bench import launched
from bench.evaluation import SHAPES, config_of, draw_prompts, draw_weights
from harness.measuring.served import latencies
from harness.onhost.asking import Ended, Place, ask
from trainer.contract import CONTRACT, parameter_root, read_json, write_json

READY_S = 900.0
TIMEOUT_S = 3600.0
NO_END = 2**31 - 1
"""No model says this: every answer has the length that was asked for."""


@dataclass(frozen=True)
class Timed:
    """One way of answering all requests."""

    way: str
    seconds: float
    requests_per_s: float
    tokens_per_s: float
    latency_s: dict[str, float]
    same_tokens: int
    near_ties: int


def make_model(folder: Path, shape: str) -> Path:
    """Random weights of a shape."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = config_of(SHAPES[shape])
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config))
    with torch.device("cpu"):
        hub = LlamaForCausalLM(LlamaConfig(**config))
    draw_weights(hub)
    tensors = {name: p.detach().contiguous() for name, p in hub.named_parameters()}
    save_file(tensors, str(folder / "model.safetensors"), metadata={"format": "pt"})
    return folder


class Replica:
    """The real process."""

    def __init__(self, model: Path, work: Path, *, device: str, threads: int, slots: int,
                 context: int, most: int) -> None:  # fmt: skip
        recipe = {
            "contract": CONTRACT, "task": "serve", "device": device, "threads": threads,
            "parameter_root": parameter_root(model / "model.safetensors"), "max_new_tokens": most,
            "context": context, "end_tokens": [NO_END], "slots": slots, "queue": 4 * slots,
            "body_bytes": 1 << 20, "cache": False, "autocast": None,
        }  # fmt: skip
        argv = launched.command(work, recipe, work, model)
        self._process = subprocess.Popen(argv, env=launched.environment())
        self._serving = work / "out" / "serving.json"

    def ready(self) -> Place:
        """Where it listens, once it answers."""
        until = time.monotonic() + READY_S
        while not self._serving.exists():
            if self._process.poll() is not None or time.monotonic() > until:
                raise SystemExit("the replica did not become ready")
            time.sleep(0.05)
        place = read_json(self._serving)
        return Place("replica", place["address"], place["port"])

    def stop(self) -> None:
        """Drain it."""
        self._process.send_signal(signal.SIGTERM)
        self._process.wait()


Requests = Sequence[tuple[list[int], int]]
"""(prompt, new tokens)."""


def closed_loop(place: Place, requests: Requests, at_once: int) -> tuple[float, list[Ended]]:
    """All requests, `at_once` out at a time; seconds and ends in their order."""
    found: dict[int, Ended] = {}

    async def work(left: Iterator[tuple[int, tuple[list[int], int]]], mark: str) -> None:
        for number, (prompt, new) in left:
            found[number] = await ask(place, f"{mark}{number}", prompt, new, TIMEOUT_S)

    async def run() -> float:
        left, began = iter(enumerate(requests)), time.monotonic()
        await asyncio.gather(*(work(left, "bench-") for _ in range(at_once)))
        return time.monotonic() - began

    seconds = asyncio.run(run())
    return seconds, [found[number] for number in range(len(requests))]


def hub_loop(hub: Any, requests: Requests, batch: int) -> tuple[float, list[list[int]]]:
    """Hugging Face generate in the order of arrival, `batch` at once, padded on the left; a batch
    runs as long as its longest answer."""
    found: list[list[int]] = []
    began = time.monotonic()
    for start in range(0, len(requests), batch):
        part = requests[start : start + batch]
        width = max(len(prompt) for prompt, _ in part)
        ids = torch.zeros(len(part), width, dtype=torch.int64)
        mask = torch.zeros_like(ids)
        for row, (prompt, _) in enumerate(part):
            ids[row, width - len(prompt) :] = torch.tensor(prompt)
            mask[row, width - len(prompt) :] = 1
        with torch.inference_mode():
            out = hub.generate(
                input_ids=ids.to(hub.device), attention_mask=mask.to(hub.device), do_sample=False,
                max_new_tokens=max(new for _, new in part), eos_token_id=None, pad_token_id=0,
            )  # fmt: skip
        answers = out[:, width:].tolist()
        found += [answer[:new] for answer, (_, new) in zip(answers, part, strict=True)]
    if hub.device.type == "cuda":
        torch.cuda.synchronize()
    return time.monotonic() - began, found


def compare(ended: Sequence[Ended], theirs: Sequence[Sequence[int]]) -> tuple[int, int]:
    """(same tokens, others that part at a near tie)."""
    same = ties = 0
    for one, other in zip(ended, theirs, strict=True):
        assert one.answer is not None
        ours = one.answer["tokens"]
        parts = [i for i, (a, b) in enumerate(zip(ours, other, strict=True)) if a != b]
        same += not parts
        ties += bool(parts) and parts[0] in one.answer["ties"]
    return same, ties


def timed(way: str, seconds: float, requests: Requests, latency: dict[str, float],
          agreement: tuple[int, int]) -> Timed:  # fmt: skip
    """Seconds as rates."""
    tokens = sum(new for _, new in requests)
    return Timed(
        way, seconds, len(requests) / seconds, tokens / seconds, latency, agreement[0], agreement[1]
    )


def run(options: argparse.Namespace, work: Path) -> dict[str, Any]:
    """Everything, as one JSON value."""
    model = options.model or make_model(work / "model", options.shape)
    words = read_json(model / "config.json")["vocab_size"]
    draw = random.Random(3)
    prompts = draw_prompts(options.requests, words)
    requests = [
        (prompt, draw.randint(max(1, options.new_tokens // 4), options.new_tokens))
        for prompt in prompts
    ]
    longest = max(map(len, prompts)) + options.new_tokens
    place_of = Replica(
        model, work, device=options.device, threads=options.threads, slots=options.concurrency,
        context=longest, most=options.new_tokens,
    )  # fmt: skip
    place = place_of.ready()
    warm = [(prompt, 8) for prompt in prompts[: options.concurrency]]
    # Twice: the second use of a step of one size captures it.
    for _ in range(2):
        closed_loop(place, [*warm, (prompts[0], options.new_tokens)], options.concurrency)
    seconds, ended = closed_loop(place, requests, options.concurrency)
    place_of.stop()
    if any(each.answer is None for each in ended):
        raise SystemExit("the replica left requests without an answer")
    from transformers import AutoModelForCausalLM

    torch.set_num_threads(options.threads)
    hub = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32).to(options.device).eval()
    hub_loop(hub, requests[:2], 2)
    rows = []
    for batch in (1, options.concurrency):
        took, theirs = hub_loop(hub, requests, batch)
        how = "one at a time" if batch == 1 else f"batches of {batch}"
        rows.append(timed(f"transformers, {how}", took, requests, {}, compare(ended, theirs)))
    latency = latencies([each.seconds for each in ended])
    ours = timed("replica", seconds, requests, latency, (len(ended), 0))
    return {
        "device": torch.cuda.get_device_name()
        if options.device == "cuda"
        else platform.processor(),
        "torch": torch.__version__,
        "settings": {
            name: str(value) for name, value in sorted(vars(options).items()) if value is not None
        },
        "ways": [asdict(each) for each in (ours, *rows)],
        "ratios": {each.way: each.seconds / seconds for each in rows},
    }


def table(result: dict[str, Any]) -> str:
    """The result for a terminal."""
    lines = [f"{'way':32} {'requests/s':>10} {'tokens/s':>9} {'same':>6} {'ties':>5} {'ratio':>6}"]
    for way in result["ways"]:
        ratio = result["ratios"].get(way["way"])
        shown = "" if ratio is None else f"{ratio:.2f}"
        lines.append(
            f"{way['way']:32} {way['requests_per_s']:10.2f} {way['tokens_per_s']:9.1f} "
            f"{way['same_tokens']:6} {way['near_ties']:5} {shown:>6}"
        )
    return "\n".join(lines)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--shape", choices=sorted(SHAPES), default="tiny")
    parser.add_argument("--model", type=Path, help="a folder of model.safetensors and config.json")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--concurrency", type=int, default=16)
    parser.add_argument("--requests", type=int, default=64)
    parser.add_argument("--new-tokens", type=int, default=96)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        result = run(options, Path(work))
    print(table(result))
    if options.out is not None:
        write_json(options.out, result)


if __name__ == "__main__":
    main()
