"""The trainer's own replica as a process on loopback: malformed requests, a full queue, a client
that goes away, drain, and weights that are not the right ones."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

from harness.onhost.asking import Ended, Place, ask, call
from tests.numerics import tiny
from trainer import model
from trainer.contract import parameter_root, read_json, read_lines
from trainer.generate import generate

TOP = Path(__file__).parents[2]
WAIT_S = 500.0
CONTEXT = 512
END = [2, 5, 9, 11, 40, 41, 42, 43]
MALFORMED = 1000


@dataclass(frozen=True)
class Running:
    """A replica that is ready."""

    process: subprocess.Popen[bytes]
    out: Path
    folder: Path
    place: Place

    def ask(self, name: str, tokens: list[int], most: int) -> Ended:
        return asyncio.run(ask(self.place, name, tokens, most, WAIT_S))

    def get(self, path: str) -> tuple[int, dict[str, Any]]:
        status, _, body = asyncio.run(call(self.place, "GET", path, {"Host": "x"}))
        return status, json.loads(body)

    def post(self, body: bytes, **headers: str) -> tuple[int, dict[str, str], dict[str, Any]]:
        head = {"Host": "x", "Content-Length": str(len(body)), "Connection": "close"}
        head |= {name.replace("_", "-"): value for name, value in headers.items()}
        status, found, data = asyncio.run(call(self.place, "POST", "/generate", head, body))
        return status, found, json.loads(data)


def start(folder: Path, out: Path, **changes: Any) -> subprocess.Popen[bytes]:
    out.mkdir()
    recipe = tiny.common(
        "serve",
        parameter_root=parameter_root(folder / "model.safetensors"),
        max_new_tokens=400,
        context=CONTEXT,
        end_tokens=END,
        slots=2,
        queue=3,
        body_bytes=20_000,
        cache=True,
        autocast=None,
    )
    (out / "recipe.json").write_text(json.dumps(recipe | changes))
    arguments = {
        "recipe": out / "recipe.json", "inputs": folder, "model": folder, "out": out / "o",
        "node-rank": 0, "nodes": 1, "address": "127.0.0.1", "port": 0, "interface": "lo",
    }  # fmt: skip
    words = [str(word) for name, value in arguments.items() for word in (f"--{name}", value)]
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    with open(out / "log", "w", encoding="utf-8") as log:
        return subprocess.Popen(
            [str(TOP / "trainer" / "launch"), *words], stderr=log, env=environment
        )


@pytest.fixture(scope="module")
def replica(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    base = tmp_path_factory.mktemp("replica")
    folder = tiny.write_model(base / "model")
    process = start(folder, base / "run")
    serving = base / "run" / "o" / "serving.json"
    until = time.monotonic() + WAIT_S
    while not serving.exists():
        assert process.poll() is None, (base / "run" / "log").read_text()
        assert time.monotonic() < until
        time.sleep(0.05)
    place = read_json(serving)
    found = Place("replica", place["address"], place["port"])
    yield Running(process, base / "run" / "o", folder, found)
    process.kill()
    process.wait()


def test_weights_with_another_root_never_answer(tmp_path: Path) -> None:
    folder = tiny.write_model(tmp_path / "model")
    process = start(folder, tmp_path / "run", parameter_root="0" * 64)
    assert process.wait(timeout=WAIT_S) == 1
    said = (tmp_path / "run" / "log").read_text()
    assert "the weights have the root" in said and "Traceback" not in said
    assert not (tmp_path / "run" / "o" / "serving.json").exists()
    assert not (tmp_path / "run" / "o" / "receipt-0.json").exists()


def test_health_and_readiness(replica: Running) -> None:
    status, health = replica.get("/health")
    assert (status, health["state"]) == (200, "ready")
    assert health["model_root"] == parameter_root(replica.folder / "model.safetensors")
    assert replica.get("/ready")[0] == 200


def test_the_answer_is_greedy_and_names_its_request(replica: Running) -> None:
    prompt = [number * 7 % tiny.WORDS for number in range(60)]
    ended = replica.ask("first-one", prompt, 30)
    assert ended.outcome == "answered" and ended.answer is not None
    network = model.load(replica.folder, torch.device("cpu"))
    alone = generate(
        network, [prompt], max_new_tokens=30, batch=1, end_tokens=END, autocast=None
    )[0]  # fmt: skip
    assert (ended.answer["tokens"], ended.answer["stopped"]) == (alone.tokens, alone.stopped)
    assert (ended.answer["request"], ended.answer["cached"]) == ("first-one", False)


def test_a_declared_cache_is_by_identity_and_counted(replica: Running) -> None:
    first, again = (replica.ask("twice", [1, 2, 3], 5) for _ in range(2))
    assert first.answer is not None and again.answer is not None
    assert (first.answer["cached"], again.answer["cached"]) == (False, True)
    assert first.answer["tokens"] == again.answer["tokens"]
    other = replica.ask("twice", [1, 2, 4], 5)
    assert (other.outcome, other.status) == ("status", 409)
    assert replica.get("/health")[1]["requests"]["cached"] == 1


REFUSED: tuple[tuple[bytes, dict[str, str], int, str], ...] = (
    (b"{}", {}, 400, "X-Request-Id is missing"),
    (b"{}", {"X_Request_Id": "a b"}, 400, "X-Request-Id is not"),
    (b"{", {"X_Request_Id": "a"}, 400, "the body"),
    (b'{"tokens":[1],"tokens":[1],"max_new_tokens":1}', {"X_Request_Id": "a"}, 400, "twice"),
    (b'{"tokens":[],"max_new_tokens":1}', {"X_Request_Id": "a"}, 400, "'tokens'"),
    (b'{"tokens":[999],"max_new_tokens":1}', {"X_Request_Id": "a"}, 400, "no token id"),
    (b'{"tokens":[1],"max_new_tokens":0}', {"X_Request_Id": "a"}, 400, "'max_new_tokens'"),
    (b'{"tokens":[1],"max_new_tokens":401}', {"X_Request_Id": "a"}, 422, "at most 400"),
    (b'{"tokens":[1],"max_new_tokens":1,"x":1}', {"X_Request_Id": "a"}, 400, "not an object"),
    (b" " * 20_001, {"X_Request_Id": "a"}, 413, "longer than 20000 bytes"),
)


@pytest.mark.parametrize(("body", "headers", "status", "says"), REFUSED)
def test_a_wrong_request_is_refused_in_one_sentence(
    replica: Running, body: bytes, headers: dict[str, str], status: int, says: str
) -> None:
    found, back, value = replica.post(body, **headers)
    assert found == status
    assert says in value["error"]
    assert back.get("x-request-id") == (headers.get("X_Request_Id") if " " not in
                                        headers.get("X_Request_Id", " ") else None)  # fmt: skip


def test_a_prompt_that_leaves_no_room_is_refused(replica: Running) -> None:
    ended = replica.ask("long", [1] * 200, 400)
    assert (ended.outcome, ended.status) == ("status", 422)
    assert "do not fit a context of 512" in ended.said


def malformed(number: int) -> bytes:
    """Bytes that are no good request, of every kind that a stranger may send."""
    draw = random.Random(number)
    body = draw.choice(
        (
            b"", b"null", b"[]", b'{"tokens":' + b"[" * 3000, b'{"tokens":[1e400]}',
            b'{"tokens":[1],"max_new_tokens":NaN}', b'{"tokens":"1","max_new_tokens":1}',
            b'{"tokens":[-1],"max_new_tokens":1}', b'{"tokens":[1.5],"max_new_tokens":2}',
            b'{"tokens":[true],"max_new_tokens":true}', draw.randbytes(draw.randrange(400)),
            b'"\xed\xa0\x80"', b'{"max_new_tokens":' + b"9" * 5000 + b',"tokens":[1]}',
            b'{"tokens":[1],"max_new_tokens":99999}', b"x" * 25_000,
        )
    )  # fmt: skip
    name = draw.choice((b"ok-1", b"", b"\xff\xfe", b"a" * 5000, b"../../etc", b"a\tb"))
    method = draw.choice((b"POST", b"POST", b"POST", b"PUT", b"GET", b"BREW", draw.randbytes(4)))
    path = draw.choice((b"/generate", b"/generate", b"/", b"/%00", b"/generate/..", b"*"))
    length = draw.choice((str(len(body)).encode(), b"-1", b"1e9", b"999999999999999999999", b"5"))
    head = b"X-Request-Id: " + name + b"\r\nContent-Length: " + length + b"\r\nHost: h\r\n"
    whole = method + b" " + path + b" HTTP/1.1\r\n" + head + b"\r\n" + body
    return draw.choice((whole, whole, whole[: draw.randrange(len(whole))], draw.randbytes(200)))


def test_1000_malformed_requests_leave_the_replica_healthy(
    replica: Running, record_property: Callable[[str, object], None]
) -> None:
    statuses: dict[str, int] = {}
    for number in range(MALFORMED):
        with socket.create_connection((replica.place.address, replica.place.port)) as peer:
            peer.settimeout(WAIT_S)
            said = b""
            try:
                peer.sendall(malformed(number))
                peer.shutdown(socket.SHUT_WR)
                said = peer.recv(64)
            except ConnectionError:
                pass
            word = said[9:12].decode("latin-1")
            statuses[word] = statuses.get(word, 0) + 1
    line = f"answers to {MALFORMED} malformed requests: {dict(sorted(statuses.items()))}"
    record_property("said", line)
    assert not any(word.startswith(("2", "5")) for word in statuses), statuses
    assert statuses["400"] > 100
    assert replica.process.poll() is None
    assert replica.get("/ready")[0] == 200
    good = replica.ask("after-them-all", [1, 2, 3], 5)
    assert good.outcome == "answered"
    status, health = replica.get("/health")
    assert (status, health["running"], health["waiting"]) == (200, 0, 0)


def test_a_client_that_goes_away_frees_its_row(replica: Running) -> None:
    body = json.dumps({"tokens": [3] * 100, "max_new_tokens": 400}).encode()
    head = (
        f"POST /generate HTTP/1.1\r\nHost: x\r\nX-Request-Id: gone\r\nContent-Length: {len(body)}"
    )
    with socket.create_connection((replica.place.address, replica.place.port)) as peer:
        peer.sendall(head.encode() + b"\r\n\r\n" + body)
        until = time.monotonic() + WAIT_S
        while not any(line["request"] == "gone" for line in served(replica)):
            assert time.monotonic() < until
            time.sleep(0.005)
    while not (ends := [line for line in served(replica) if line["request"] == "gone"][1:]):
        assert time.monotonic() < until
        time.sleep(0.01)
    assert (ends[0]["event"], ends[0]["stopped"]) == ("ended", "cancelled")


def served(replica: Running) -> list[dict[str, Any]]:
    path = replica.out / "served-0.jsonl"
    data = path.read_bytes() if path.exists() else b""
    return [json.loads(line) for line in data.split(b"\n")[:-1]]


def test_a_full_queue_says_so_and_what_was_accepted_is_answered(replica: Running) -> None:
    async def burst() -> list[Ended]:
        return list(
            await asyncio.gather(
                *(
                    ask(replica.place, f"burst-{number}", [number + 3] * 50, 150, WAIT_S)
                    for number in range(16)
                )
            )
        )

    ended = asyncio.run(burst())
    outcomes = {each.outcome for each in ended}
    assert outcomes == {"answered", "overloaded"}
    assert {each.status for each in ended if each.outcome == "overloaded"} == {429}
    assert sum(each.outcome == "answered" for each in ended) >= 5  # two rows and a queue of three


def test_sigterm_drains_and_leaves_a_receipt(replica: Running) -> None:
    """The last test of this module: it ends the replica."""

    async def drain() -> list[Ended]:
        asked = [
            asyncio.ensure_future(ask(replica.place, f"drain-{n}", [n + 20] * 80, 40, WAIT_S))
            for n in range(4)
        ]
        until = time.monotonic() + WAIT_S
        while sum(line["request"].startswith("drain-") for line in served(replica)) < 2:
            assert time.monotonic() < until
            await asyncio.sleep(0.005)
        while True:  # all four are accepted before the signal
            _, _, body = await call(replica.place, "GET", "/health", {"Host": "x"})
            health = json.loads(body)
            ended = sum(task.done() for task in asked)
            if health["running"] + health["waiting"] + ended >= 4:
                break
            await asyncio.sleep(0.005)
        replica.process.send_signal(signal.SIGTERM)
        return list(await asyncio.gather(*asked))

    ended = asyncio.run(drain())
    assert [each.outcome for each in ended] == ["answered"] * 4
    assert replica.process.wait(timeout=WAIT_S) == 0
    assert replica.ask("too-late", [1], 1).outcome == "refused"
    receipt = read_json(replica.out / "receipt-0.json")
    assert receipt["task"] == "serve"
    assert receipt["model_root"] == parameter_root(replica.folder / "model.safetensors")
    answered = [
        line
        for line in read_lines(replica.out / "served-0.jsonl")
        if line["event"] == "ended" and line["stopped"] in ("end", "limit")
    ]
    assert receipt["body"]["requests"]["answered"] == len(answered)
    assert receipt["body"]["most_running"] == 2
    assert read_json(replica.out / "heartbeat-0.json")["phase"] == "done"
