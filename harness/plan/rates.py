"""Measured rates, each with where it came from. What is not here is unknown, never guessed.

A rate holds for one device, one model size and, for updates, one global batch and exchange.
"""

from __future__ import annotations

from typing import Literal

from harness.plan.kinds import Count, NotNegative, Positive, Text
from harness.strict import Model

Device = Literal["cpu", "L40S", "H200"]
SMALL = 134_515_008
"""SmolLM2-135M-Instruct."""
LARGE = 1_711_376_384
"""SmolLM2-1.7B-Instruct."""


class UpdateRate(Model):
    """Seconds of an update, and of all that an arm does besides."""

    device: Device
    parameters: Count
    global_batch: Count
    workers: Count
    exchange: Literal["none", "dense", "powersgd"]
    seconds: Positive
    """One update."""
    other_seconds: NotNegative
    """Start, checkpoints and digests of the whole arm; 0 where they were not measured."""
    source: Text


class UnitRate(Model):
    """Seconds a unit of work for a model size on a device."""

    device: Device
    parameters: Count
    work: Literal["token", "case", "start", "request-one", "request-two"]
    """A trained token; a scored case; a process start; a served request by live replicas."""
    seconds: Positive
    source: Text


UPDATES = (
    UpdateRate(
        device="L40S", parameters=LARGE, global_batch=256, workers=1, exchange="none",
        seconds=1304.90 / 128, other_seconds=1343.23 - 1304.90,
        source="measured on one L40S: 1,304.90 s active for 128 updates, 1,343.23 s in all",
    ),
    UpdateRate(
        device="L40S", parameters=LARGE, global_batch=256, workers=2, exchange="powersgd",
        seconds=875.56 / 128, other_seconds=925.27 - 875.56,
        source="measured on two L40S hosts: 875.56 s active for 128 updates, 925.27 s in all",
    ),
    UpdateRate(
        device="L40S", parameters=LARGE, global_batch=256, workers=2, exchange="dense",
        seconds=10.2 / 0.65, other_seconds=49.71,
        source="arithmetic from 10.2 s an update on one L40S and a speed-up of 0.65 for dense FP32 "
        "at 5 Gbit/s; start and checkpoint as measured for the compressed pair",
    ),
    UpdateRate(
        device="L40S", parameters=LARGE, global_batch=8, workers=1, exchange="none",
        seconds=208.70 / 128, other_seconds=986.84 - 208.70,
        source="measured on one L40S: 208.70 s in 128 updates, 986.84 s with checkpoints and "
        "digests (start-up not counted)",
    ),
    UpdateRate(
        device="L40S", parameters=LARGE, global_batch=8, workers=2, exchange="dense",
        seconds=917.03 / 128, other_seconds=1294.04 - 917.03,
        source="measured on two L40S hosts of one zone: 917.03 s in 128 updates, 1,294.04 s with "
        "checkpoints and digests (start-up not counted)",
    ),
    UpdateRate(
        device="H200", parameters=LARGE, global_batch=256, workers=1, exchange="none",
        seconds=5.58, other_seconds=0,
        source="measured on one H200 with random weights and a plain padded trainer: 5.58 s",
    ),
    UpdateRate(
        device="H200", parameters=LARGE, global_batch=256, workers=2, exchange="dense",
        seconds=4.34, other_seconds=0,
        source="measured on two H200s of one machine with random weights and a stock trainer: "
        "4.34 s; between hosts it is slower",
    ),
    UpdateRate(
        device="H200", parameters=LARGE, global_batch=256, workers=2, exchange="powersgd",
        seconds=3.90, other_seconds=0,
        source="measured on two H200s of one machine with random weights and the stock hook: "
        "3.90 s; between hosts it is slower",
    ),
)  # fmt: skip

UNITS = (
    UnitRate(
        device="cpu", parameters=SMALL, work="token", seconds=1 / 75,
        source="measured on 2 cores: 75 to 150 tokens/s, the slow end taken",
    ),
    UnitRate(
        device="cpu", parameters=SMALL, work="case", seconds=39 / 48,
        source="measured on 2 cores: 24 to 39 s for 48 cases, the slow end taken",
    ),
    UnitRate(
        device="cpu", parameters=SMALL, work="start", seconds=63,
        source="measured on 2 cores: import 10 s, tokenizer 15 s, model 38 s from a GGUF",
    ),
    UnitRate(
        device="H200", parameters=SMALL, work="token", seconds=1 / 33_000,
        source="measured on one H200: 33,000 tokens/s with a stock trainer",
    ),
    UnitRate(
        device="H200", parameters=SMALL, work="case", seconds=59.5 / 1024,
        source="measured on one H200: 59.5 s for 1,024 cases of the seed, 64 at once",
    ),
    UnitRate(
        device="L40S", parameters=LARGE, work="request-one", seconds=11.02 / 32,
        source="measured with one replica on an L40S: 32 requests in 11.02 s",
    ),
    UnitRate(
        device="L40S", parameters=LARGE, work="request-two", seconds=6.61 / 32,
        source="measured with two replicas on L40S hosts: 32 requests in 6.61 s",
    ),
)  # fmt: skip

DEVICES: dict[str, Device] = {"g6e": "L40S", "p5en": "H200"}
"""By family of the EC2 instance type."""


def update_rate(
    device: Device | None, parameters: int | None, batch: int, workers: int, exchange: str
) -> UpdateRate | None:
    """The rate that was measured for exactly this shape, or None."""
    wanted = (device, parameters, batch, workers, exchange)
    for rate in UPDATES:
        shape = (rate.device, rate.parameters, rate.global_batch, rate.workers, rate.exchange)
        if shape == wanted:
            return rate
    return None


def unit_rate(device: Device | None, parameters: int | None, work: str) -> UnitRate | None:
    """The rate of one kind of work for this model size on this device, or None."""
    for rate in UNITS:
        if (rate.device, rate.parameters, rate.work) == (device, parameters, work):
            return rate
    return None
