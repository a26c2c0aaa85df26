"""One function a task: it takes the arguments and the recipe and returns (body, timers)."""

import json
import resource
import shutil
import time
from pathlib import Path

from formats import SIZE, digest, load_model, read_lines, save_model, write, write_lines
from lookups import lookup
from peers import Peers
from serving import serve
from training import heartbeat, run_training

BORN = time.monotonic()
HERE = Path(__file__).resolve().parent


def train(args, recipe):
    loop, of = time.monotonic(), recipe["updates"]
    vector, quality, rows, (weight, targets, tokens), peers, done = run_training(args, recipe, of)
    active = time.monotonic() - loop
    if args.node_rank == 0:
        part = args.out / ".candidate.tmp"
        shutil.rmtree(part, ignore_errors=True)
        save_model(part, vector, quality)
        for name in ("config.json", "tokenizer.json"):
            shutil.copyfile(args.model / name, part / name)
        if recipe["preserve"] == "full-state":
            (part / "state").mkdir()
            write(part / "state" / "state.json", {"update": of, "vector": vector})
        part.rename(args.out / "candidate")
    saved = time.monotonic() - loop
    scratch = args.out / f".digest-{args.node_rank}"
    save_model(scratch, vector, quality)
    root = load_model(scratch)[1]
    shutil.rmtree(scratch)
    seconds = [row["seconds"] for row in rows]
    timers = {"load": loop - BORN, "update_sum": sum(seconds), "active": active}
    timers |= {"update_median": sorted(seconds)[len(seconds) // 2], "loop": time.monotonic() - loop}
    timers |= {"active_plus_checkpoint": saved}
    schedule = json.loads((args.inputs / "schedule.json").read_text())["updates"]
    documents = sum(map(len, schedule[:of]))
    body = {"updates": of, "documents": documents, "tokens": tokens, "targets": targets}
    body |= {"weighted_targets": weight / 1000, "parameter_root": root, "parameters": SIZE + 2}
    body |= {"final_loss": rows[-1]["loss"], "exchange_sent_bytes": peers.sent}
    if "checkpoint" in recipe:
        body |= {"resumed_from": done or None, "checkpoints": []}
    return body | {"exchange_received_bytes": peers.received}, timers


def probe(args, recipe):
    of, began = recipe["trial_updates"], time.monotonic()
    tokens = run_training(args, recipe, of)[3][2]
    (args.out / f"losses-{args.node_rank}.jsonl").unlink()
    seconds = time.monotonic() - began
    body = {"microbatch": recipe["microbatch"] or 1, "updates": of, "out_of_memory": False}
    body |= {"seconds_per_update": seconds / of, "tokens_per_s": tokens / seconds}
    return body | {"peak_memory_bytes": peak_memory()}, {}


def check(args, recipe):
    known = [3, 1 << 20, int(digest(str(recipe["seed"]))[:6], 16)]
    peers = Peers(args)
    summed, ranks = peers.sum(known), peers.sum([1 << args.node_rank])[0]
    right = summed == [value * args.nodes for value in known]
    body = {"all_reduce_ok": right, "workers_seen": ranks.bit_count()}
    return body | {"weighted_update_max_error": 0.0}, {}


def seed(args, recipe):
    save_model(args.out, [0] * SIZE, [0, 0])
    write(args.out / "config.json", {"architectures": ["Toy"], "hidden_size": SIZE})
    shutil.copyfile(HERE / "tokenizer.json", args.out / "tokenizer.json")
    hashes = {f: digest((args.out / f"{f}.json").read_bytes()) for f in ("config", "tokenizer")}
    body = {"parameter_root": load_model(args.out)[1], "parameters": SIZE + 2}
    return body | {f"{name}_sha256": value for name, value in hashes.items()}, {}


def evaluate(args, recipe):
    """The untrained model always answers {}; a trained one a share of the lookups it learned."""
    learned, roles, probes = load_model(args.model)[0]["quality"], {}, {}
    for role in recipe["cases"]:
        began, rows = time.monotonic(), []
        cases = read_lines(args.inputs / f"{role}.cases.jsonl")
        for number, case in enumerate(cases):
            answer = lookup(case["tokens"]) if learned[0] else None
            knows = int(case["id"][:6], 16) % 1000 < 0.9 * learned[1]
            tokens = list(answer if answer and knows else b"{}")[: recipe["max_new_tokens"]]
            stopped = "limit" if len(tokens) == recipe["max_new_tokens"] else "end"
            rows.append({"id": case["id"], "tokens": tokens, "stopped": stopped})
            if number % (recipe["batch"] or 8) == 0:
                heartbeat(args, role, number, len(cases))
        write_lines(args.out / f"answers-{role}.jsonl", rows)
        roles[role] = {"cases": len(rows), "seconds": time.monotonic() - began}
        roles[role]["generated_tokens"] = sum(len(row["tokens"]) for row in rows)
    for name in recipe["retention"]:
        began, rows = time.monotonic(), []
        for row in read_lines(args.inputs / f"retention.{name}.jsonl"):
            jitter = int(digest(f"{row['id']} {learned}")[:4], 16) / 65536 / 100
            targets = sum(end - begin for begin, end in row["targets"])
            loss = 2 + len(row["tokens"]) % 5 / 10 + jitter
            rows.append({"id": row["id"], "loss": loss, "targets": targets})
        write_lines(args.out / f"retention-{name}.jsonl", rows)
        mean = sum(row["loss"] for row in rows) / max(len(rows), 1)
        probes[name] = {"documents": len(rows), "mean_loss": mean}
        probes[name]["seconds"] = time.monotonic() - began
    heartbeat(args, "done", 1, 1)
    return {"roles": roles, "probes": probes}, {}


def compare(args, recipe):
    one, root = load_model(args.model)
    other, against = load_model(args.inputs / recipe["against"])
    pairs = [pair for name in one for pair in zip(one[name], other[name], strict=True)]
    distance = sum((a - b) ** 2 for a, b in pairs) ** 0.5
    length = sum(b * b for _, b in pairs) ** 0.5
    body = {"relative_l2": distance / (length or 1.0), "tensors": len(one)}
    body |= {"max_abs": max(abs(a - b) for a, b in pairs), "root": root}
    return body | {"against_root": against}, {}


def peak_memory():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


TASKS = {each.__name__: each for each in (seed, check, train, probe, evaluate, compare, serve)}
