"""The tables as text, with the targets beside what was measured."""

from __future__ import annotations

from collections.abc import Sequence

from bench.measure import Distance, Timed

GIB = 2**30


def times(rows: Sequence[Timed], reference: Timed, flops_a_token: float, rate: float) -> str:
    """Seconds an update, times the reference's rate, memory and the share of the matmul rate."""
    lines = [
        f"{'':44} {'s/update':>9} {'×ref':>6} {'tok/s':>8} {'of bf16':>8} {'GiB':>6} {'1st, s':>7}"
    ]
    for row in rows:
        if row.seconds is None or row.tokens_per_s is None:
            lines.append(f"{row.name:44} {row.why}")
            continue
        gain = (reference.seconds or 0) / row.seconds
        share = row.tokens_per_s * flops_a_token / rate
        peak, first = (row.peak_bytes or 0) / GIB, row.first_s or 0
        lines.append(
            f"{row.name:44} {row.seconds:9.3f} {gain:6.2f} {row.tokens_per_s:8.0f} {share:8.1%} "
            f"{peak:6.1f} {first:7.1f}"
        )
    return "\n".join(lines)


def errors(rows: Sequence[Distance]) -> str:
    """Relative distance of one batch's loss and gradient from FP32."""
    lines = [f"{'distance from FP32':44} {'loss':>10} {'gradient':>10}"]
    lines += [f"{row.name:44} {row.loss_error:10.2e} {row.gradient_error:10.2e}" for row in rows]
    return "\n".join(lines)


def targets(stock: Sequence[Timed], ours: Timed, distance: Sequence[Distance]) -> str:
    """Issue targets for one GPU, each 'reached' or 'missed'."""
    reference = stock[0]
    best = min((row for row in stock if row.seconds), key=lambda row: row.seconds or 0)
    if ours.seconds is None or reference.seconds is None or best.seconds is None:
        return "no target can be judged: a loop ran out of memory"
    autocast, own = distance[0], next(d for d in distance if d.name == ours.name)
    lines = [
        _target("times the reference recipe", reference.seconds / ours.seconds, 4.3),
        _target(f"times the best stock loop ({best.name})", best.seconds / ours.seconds, 3.0),
        f"loss no further from FP32 than autocast: {own.loss_error:.2e} to "
        f"{autocast.loss_error:.2e}: {_word(own.loss_error <= autocast.loss_error)}",
    ]
    return "\n".join(lines)


def _target(what: str, found: float, least: float) -> str:
    return f"{what}: {found:.2f}, at least {least:g}: {_word(found >= least)}"


def _word(reached: bool) -> str:
    return "reached" if reached else "MISSED"
