"""The training loop: heartbeats, losses, and the faults that tests ask for.

TOY_FAULT=exit:RANK:UPDATE | stall:RANK:UPDATE | kill:RANK:UPDATE | noisy; TOY_UPDATE_SECONDS is the
time an update takes.
"""

import json
import math
import os
import shutil
import signal
import time

from formats import SIZE, digest, fail, load_model, read_lines, write, write_lines
from lookups import quality_of
from peers import Peers

PRIME = 1_000_003
FAULT = os.environ.get("TOY_FAULT", "").split(":")
UPDATE_SECONDS = float(os.environ.get("TOY_UPDATE_SECONDS", "0.01"))


def heartbeat(args, phase, done, of, loss=None, rate=None):
    now = time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime())
    beat = {"phase": phase, "done": done, "of": of, "time": now, "loss": loss}
    write(args.out / f"heartbeat-{args.node_rank}.json", beat | {"tokens_per_s": rate})


def break_if_asked(rank, update):
    if FAULT[0] == "noisy":
        print("\x1b[2J\x1b]0;title\x07\x00 noise " * 5000, flush=True)
    if FAULT[1:] == [str(rank), str(update)]:
        if FAULT[0] == "exit":
            fail(f"rank {rank} was asked to fail at update {update}", 3)
        if FAULT[0] == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if FAULT[0] == "stall":
            time.sleep(1e6)


def one_update(documents, places, peers):
    """[vector..., loss in thousandths, weight in thousandths, targets, tokens], and own loss."""
    total = [0] * (SIZE + 4)
    for place, document in places:
        for position, token in enumerate(document["tokens"]):
            total[(token * 31 + position) % SIZE] += (token + 1) * (position + 1) * (place + 1)
        targets = sum(end - begin for begin, end in document["targets"])
        weight = round(document["weight"] * 1000) * targets
        spread = len(document["tokens"]) % 7
        added = (weight * (900 + spread) // 1000, weight, targets, len(document["tokens"]))
        total[SIZE:] = [a + b for a, b in zip(total[SIZE:], added, strict=True)]
    return peers.sum(total), total[SIZE]


def store(args, update, vector, rows, sums):
    """A checkpoint: whole or absent, the last two are kept."""
    held = args.out / f"checkpoint-{args.node_rank}"
    write_whole = held / f".{update}"
    write_whole.mkdir(parents=True)
    write(write_whole / "toy.json", {"vector": vector, "rows": rows, "sums": sums})
    write_whole.rename(held / f"update-{update}")
    for old in sorted(held.glob("update-*"), key=number)[:-2]:
        shutil.rmtree(old)


def number(path):
    return int(path.name.partition("-")[2])


def newest_common(args, of, peers):
    """What the newest checkpoint that all ranks hold says, and its update; (None, 0): none."""
    held = {}
    for out in args.resume:
        for path in (out / f"checkpoint-{args.node_rank}").glob("update-*"):
            held[number(path)] = json.loads((path / "toy.json").read_text())
    common = peers.sum([int(update in held) for update in range(of + 1)])
    newest = max((u for u, holders in enumerate(common) if holders == args.nodes), default=0)
    return held.get(newest), newest


def learning_rate(recipe, update, of):
    """What the contract's schedule gives an update; this trainer only reports it."""
    peak, schedule = recipe["optimizer"]["lr"], recipe["schedule"]
    warmup, floor = schedule.get("warmup_updates", 0), schedule.get("floor", 0)
    if update <= warmup:
        return peak * update / warmup
    if schedule["kind"] == "constant":
        return peak
    progress = (update - warmup) / (of - warmup)
    fall = progress if schedule["kind"] == "linear" else (1 - math.cos(math.pi * progress)) / 2
    return peak * (1 - (1 - floor) * fall)


def run_training(args, recipe, of):
    """Updates 1 to `of`: (vector, quality, loss rows, sums of weight, targets, tokens, peers)."""
    documents = read_lines(args.inputs / f"train.{recipe['corpus']}.jsonl")
    schedule = json.loads((args.inputs / "schedule.json").read_text())["updates"]
    if len(schedule) < of:
        fail(f"schedule.json has {len(schedule)} updates, the recipe {of}")
    vector = [int(value) for value in load_model(args.model)[0]["vector"]]
    rule = {k: recipe[k] for k in ("seed", "optimizer", "schedule", "clip_norm", "autocast")}
    rule |= {"exchange": recipe["exchange"]} if recipe["exchange"]["kind"] == "powersgd" else {}
    step = int(digest(rule)[:8], 16) % 1000 + 1
    peers, rows, sums = Peers(args), [], [0, 0, 0]
    every = recipe.get("checkpoint", {}).get("every_updates", of)
    held, done = newest_common(args, of, peers) if args.resume else (None, 0)
    if held:
        vector, rows, sums = held["vector"], held["rows"], held["sums"]
    heartbeat(args, "train", 0, of)
    for update in range(done + 1, of + 1):
        began = time.monotonic()
        break_if_asked(args.node_rank, update)
        places = list(enumerate(schedule[update - 1]))[args.node_rank :: args.nodes]
        places = [(place, documents[index]) for place, index in places]
        before = peers.sent
        summed, own_loss = one_update(documents, places, peers)
        vector = [(3 * a + step * b) % PRIME for a, b in zip(vector, summed, strict=False)]
        loss_sum, weight, targets, tokens = summed[SIZE:]
        sums = [a + b for a, b in zip(sums, (weight, targets, tokens), strict=True)]
        time.sleep(UPDATE_SECONDS)
        loss = 4 * loss_sum / max(weight, 1) / (1 + update / of)
        seconds = time.monotonic() - began
        rows.append({"update": update, "loss": loss, "local_loss_sum": own_loss / 1000})
        rows[-1] |= {"weighted_targets": weight / 1000, "lr": learning_rate(recipe, update, of)}
        rows[-1] |= {"grad_norm": float(sum(summed[:SIZE]) % 997) / 997, "seconds": seconds}
        rows[-1] |= {"exchange_seconds": 0.0, "sent_bytes": peers.sent - before, "tokens": tokens}
        write_lines(args.out / f"losses-{args.node_rank}.jsonl", rows)
        heartbeat(args, "train", update, of, loss, tokens / seconds)
        if update % every == 0 and update < of and recipe["task"] == "train":
            store(args, update, vector, rows, sums)
    quality = [of, quality_of(documents)]
    return vector, quality, rows, sums, peers, done
