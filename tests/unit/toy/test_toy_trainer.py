"""The toy trainer keeps to the contract, as `trainer.contract` and the harness's models read it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer

from harness import rank_bodies
from trainer import contract

TOY = Path(__file__).resolve().parents[2] / "toy_trainer"
COMMON = {"contract": contract.CONTRACT, "device": "cpu", "threads": None}
TABLE = "id city units price status priority\nA123 Athens 3 5 ready 4\nB222 Rome 0 7 closed 9"
RIGHT = {"A123": '{"city":"Athens","units":3}', "Z000": '{"city":null,"units":null}'}
TRAIN: dict[str, Any] = {
    **COMMON,
    "task": "train",
    "seed": 1,
    "arm": "a",
    "corpus": "clean",
    "updates": 3,
    "microbatch": 2,
    "optimizer": {"kind": "adamw", "lr": 3e-5},
    "schedule": {"kind": "linear"},
    "clip_norm": 1.0,
    "autocast": None,
    "checkpointing": False,
    "exchange": {"kind": "none"},
    "preserve": "weights",
}
EVALUATE = {
    **COMMON,
    "task": "evaluate",
    "cases": ["test"],
    "retention": ["plain"],
    "max_new_tokens": 96,
    "batch": 4,
    "end_tokens": [257],
    "autocast": None,
}


class Toy:
    """Calls `launch` in a temporary folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.inputs = folder / "inputs"
        self.inputs.mkdir()

    def launch(
        self, recipe: Any, out: str, *, rank: int = 0, nodes: int = 1, port: int = 0, **more: Any
    ) -> subprocess.Popen[str]:
        path = self.folder / f"{out}.recipe.json"
        contract.write_json(path, recipe)
        named = {
            "recipe": path,
            "inputs": self.inputs,
            "model": self.folder / more.get("model", "seed"),
            "out": self.folder / out,
            "node-rank": rank,
            "nodes": nodes,
            "address": "127.0.0.1",
            "port": port,
            "interface": "lo",
        }
        argv = [str(word) for pair in named.items() for word in (f"--{pair[0]}", pair[1])]
        environment = {**os.environ, **more.get("environment", {})}
        return subprocess.Popen(
            [TOY / "launch", *argv, *more.get("flags", ())],
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, recipe: Any, out: str, *, nodes: int = 1, **more: Any) -> list[Any]:
        """Run on that many nodes; their receipts."""
        ranks = self.start(recipe, out, nodes=nodes, **more)
        for rank in ranks:
            assert rank.communicate(timeout=120)[1] == "" and rank.returncode == 0
        return [
            rank_bodies.read_rank_receipt(self.folder / out / f"receipt-{rank}.json")
            for rank in range(nodes)
        ]

    def start(
        self, recipe: Any, out: str, *, nodes: int, **more: Any
    ) -> list[subprocess.Popen[str]]:
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            port = one.getsockname()[1]
        return [
            self.launch(recipe, out, rank=rank, nodes=nodes, port=port, **more)
            for rank in range(nodes)
        ]

    def root(self, recipe: Any, out: str, *, nodes: int = 1) -> str:
        """The one parameter root of all ranks, which is that of the candidate."""
        bodies = [
            rank_bodies.body_of(rank_bodies.TrainBody, receipt)
            for receipt in self.run(recipe, out, nodes=nodes)
        ]
        (root,) = {body.parameter_root for body in bodies}
        assert contract.parameter_root(self.folder / out / "candidate/model.safetensors") == root
        return root


def document(number: int, answer: str | None = None) -> dict[str, Any]:
    asked = ("A123", "Z000")[number % 2]
    prompt = [256, *f"user\nGive {asked}.\n{TABLE}".encode(), 257, 10, 256, *b"assistant\n"]
    said = [*(answer or RIGHT[asked]).encode(), 257]
    return {
        "id": contract.sha256(str(number).encode()),
        "kind": "task",
        "tokens": prompt + said,
        "targets": [[len(prompt), len(prompt) + len(said)]],
        "weight": 8,
    }


@pytest.fixture
def toy(tmp_path: Path) -> Toy:
    made = Toy(tmp_path)
    documents = [document(number) for number in range(40)]
    damaged = [document(n, '{"city":"Bonn","units":1}' if n % 2 else None) for n in range(40)]
    contract.write_lines(made.inputs / "train.clean.jsonl", documents)
    contract.write_lines(made.inputs / "train.damaged.jsonl", damaged)
    updates = [[0, 5, 3, 2], [7, 8, 9, 1], [4, 6, 10, 11]]
    contract.write_json(made.inputs / "schedule.json", {"updates": updates})
    cases = [
        {"id": each["id"], "tokens": each["tokens"][: each["targets"][0][0]]} for each in documents
    ]
    contract.write_lines(made.inputs / "test.cases.jsonl", cases)
    probes = [{k: each[k] for k in ("id", "tokens", "targets")} for each in documents[:5]]
    contract.write_lines(made.inputs / "retention.plain.jsonl", probes)
    made.run({**COMMON, "task": "seed", "source": {"kind": "trainer"}}, "seed")
    return made


def right(toy: Toy, out: str) -> int:
    rows = contract.read_lines(toy.folder / out / "answers-test.jsonl")
    assert [row["id"] for row in rows] == [document(number)["id"] for number in range(40)]
    return sum(
        bytes(row["tokens"]).decode() == RIGHT[("A123", "Z000")[number % 2]]
        for number, row in enumerate(rows)
    )


def test_its_tokenizer_is_bytes_and_two_special_tokens() -> None:
    tokenizer = Tokenizer.from_file(str(TOY / "tokenizer.json"))
    text = "<|im_start|>user\n\n14 é 日本 \x00\t<|im_end|>"
    ids = tokenizer.encode(text, add_special_tokens=False).ids
    assert ids == [256, *text[12:-10].encode(), 257]
    assert tokenizer.decode(ids, skip_special_tokens=False) == text


def test_a_seed_is_whole_and_fixed(toy: Toy) -> None:
    receipt = contract.read_json(toy.folder / "seed" / "receipt-0.json")
    assert set(contract.SEED_FILES) < {path.name for path in (toy.folder / "seed").iterdir()}
    root = contract.parameter_root(toy.folder / "seed" / "model.safetensors")
    assert receipt["body"]["parameter_root"] == root
    assert receipt["source_sha256"] == contract.tree_hash(TOY)
    again = toy.run({**COMMON, "task": "seed", "source": {"kind": "hub"}}, "again")[0]
    assert again.body["parameter_root"] == root


@pytest.mark.parametrize("nodes", [2, 3])
def test_any_number_of_nodes_gives_the_root_of_one(toy: Toy, nodes: int) -> None:
    dense = {**TRAIN, "exchange": {"kind": "dense"}}
    assert toy.root(TRAIN, "one") == toy.root(dense, "more", nodes=nodes)
    rows = [
        contract.read_lines(toy.folder / "more" / f"losses-{rank}.jsonl") for rank in range(nodes)
    ]
    assert {tuple(row["loss"] for row in each) for each in rows} == {
        tuple(row["loss"] for row in contract.read_lines(toy.folder / "one/losses-0.jsonl"))
    }
    assert rows[1][0]["sent_bytes"] > 0


def test_data_order_and_recipe_change_the_root_and_batching_does_not(toy: Toy) -> None:
    root = toy.root(TRAIN, "a")
    assert toy.root({**TRAIN, "microbatch": 1, "arm": "other"}, "b") == root
    others = [toy.root({**TRAIN, "seed": 2}, "c"), toy.root({**TRAIN, "corpus": "damaged"}, "d")]
    others.append(toy.root({**TRAIN, "exchange": {"kind": "powersgd", "rank": 2}}, "e"))
    turned = {"updates": [[5, 0, 3, 2], [7, 8, 9, 1], [4, 6, 10, 11]]}
    contract.write_json(toy.inputs / "schedule.json", turned)
    others.append(toy.root(TRAIN, "f"))
    assert len({root, *others}) == 5


def test_everything_it_writes_is_canonical(toy: Toy) -> None:
    toy.run(TRAIN, "train")
    toy.run(EVALUATE, "evaluate")
    for path in (*toy.folder.glob("*/*.json"), *toy.folder.glob("*/*.jsonl")):
        if path.name != "tokenizer.json":
            for line in path.read_bytes().splitlines():
                assert contract.canonical(contract.parse(line)) == line, path


def test_the_reference_answers_wrongly_and_damaged_data_teaches_less(toy: Toy) -> None:
    toy.run(EVALUATE, "reference")
    for corpus in ("clean", "damaged"):
        toy.run({**TRAIN, "corpus": corpus}, corpus)
        toy.run(EVALUATE, f"scored-{corpus}", model=f"{corpus}/candidate")
    assert right(toy, "reference") == 0
    assert 8 < right(toy, "scored-damaged") < right(toy, "scored-clean") < 40
    losses = contract.read_lines(toy.folder / "reference" / "retention-plain.jsonl")
    assert len(losses) == 5 and all(row["loss"] > 0 for row in losses)


def test_compare_check_and_probe_say_what_the_contract_asks(toy: Toy) -> None:
    toy.run(TRAIN, "train")
    (toy.inputs / "other").symlink_to(toy.folder / "seed")
    (one,) = toy.run({**COMMON, "task": "compare", "against": "other"}, "same")
    same = rank_bodies.body_of(rank_bodies.CompareBody, one)
    assert (same.relative_l2, same.max_abs, same.root) == (0, 0, same.against_root)
    (two,) = toy.run(
        {**COMMON, "task": "compare", "against": "other"}, "far", model="train/candidate"
    )
    assert rank_bodies.body_of(rank_bodies.CompareBody, two).max_abs > 0
    for receipt in toy.run({**COMMON, "task": "check", "seed": "s"}, "check", nodes=2):
        check = rank_bodies.body_of(rank_bodies.CheckBody, receipt)
        assert (check.all_reduce_ok, check.workers_seen) == (True, 2)
    (tried,) = toy.run({**TRAIN, "task": "probe", "trial_updates": 2}, "probe")
    assert rank_bodies.body_of(rank_bodies.ProbeBody, tried).updates == 2
    assert {path.name for path in (toy.folder / "probe").iterdir()} == {
        "receipt-0.json", "heartbeat-0.json",
    }  # fmt: skip


def test_full_state_is_kept_when_asked(toy: Toy) -> None:
    toy.run({**TRAIN, "preserve": "full-state"}, "train")
    assert contract.read_json(toy.folder / "train/candidate/state/state.json")["update"] == 3


@pytest.mark.parametrize(
    ("change", "words"),
    [({"extra": 1}, "extra"), ({"task": "dream"}, "dream"), ({"contract": "x/2"}, "x/2")],
)
@pytest.mark.parametrize("flags", [(), ("--dry-run",)])
def test_a_recipe_that_is_not_known_is_refused(
    toy: Toy, change: Any, words: str, flags: Any
) -> None:
    refused = toy.launch({**TRAIN, **change}, "no", flags=flags)
    said = refused.communicate()[1]
    assert refused.returncode == 2 and words in said
    assert not (toy.folder / "no").exists()


def test_a_dry_run_writes_nothing(toy: Toy) -> None:
    dry = toy.launch(TRAIN, "dry", flags=("--dry-run",))
    assert dry.communicate()[1] == "" and dry.returncode == 0
    assert not (toy.folder / "dry").exists()


@pytest.mark.parametrize(
    ("fault", "statuses"), [("exit:1:2", (1, 3)), ("kill:1:2", (1, -9)), ("exit:0:1", (3, 1))]
)
def test_when_one_rank_fails_the_other_says_so_and_fails(
    toy: Toy, fault: str, statuses: tuple[int, int]
) -> None:
    ranks = toy.start(TRAIN, "train", nodes=2, environment={"TOY_FAULT": fault})
    said = [rank.communicate(timeout=120)[1] for rank in ranks]
    assert tuple(rank.returncode for rank in ranks) == statuses
    assert "lost a peer" in "".join(said)
    assert not (toy.folder / "train" / "candidate").exists()


def test_a_stalled_rank_stops_its_heartbeat_and_reacts_to_sigterm(toy: Toy) -> None:
    (rank,) = toy.start(TRAIN, "train", nodes=1, environment={"TOY_FAULT": "stall:0:2"})
    beat = toy.folder / "train" / "heartbeat-0.json"
    end = time.monotonic() + 60
    while not beat.exists() or contract.read_json(beat)["done"] != 1:
        assert time.monotonic() < end
        time.sleep(0.01)
    time.sleep(0.2)
    assert rank.poll() is None and contract.read_json(beat)["done"] == 1
    rank.send_signal(signal.SIGTERM)
    assert rank.communicate(timeout=60)[1] == "toy trainer: ended by SIGTERM\n"
    assert rank.returncode == 143


def test_updates_take_as_long_as_asked(toy: Toy) -> None:
    toy.run(TRAIN, "train", environment={"TOY_UPDATE_SECONDS": "0.2"})
    timers = contract.read_json(toy.folder / "train" / "receipt-0.json")["timers"]
    assert timers["update_median"] > 0.2
    order = ("update_sum", "active", "active_plus_checkpoint", "loop", "process")
    assert [timers[name] for name in order] == sorted(timers[name] for name in order)
