"""RFC 3161 time stamps: a real authority's replies, kept, damaged and of something else."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from harness.attest.stamping import (
    TRIES,
    Authority,
    TimeStamp,
    ask,
    check_stamp,
    load_authority,
    signer_name,
)
from harness.errors import BadInput, Waiting
from tests import authority as tsa

DATA = b'{"commitment":1}\n'


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tsa.Authority]:
    with tsa.authority(tmp_path_factory.mktemp("tsa") / "files") as found:
        yield found


@pytest.fixture(scope="module")
def asked(running: tsa.Authority) -> Authority:
    return load_authority(running.url, running.root)


@pytest.fixture(scope="module")
def stamp(asked: Authority) -> TimeStamp:
    return ask(asked, DATA, sleep=lambda _: None)


def test_a_stamp_gives_the_time_and_who_signed(asked: Authority, stamp: TimeStamp) -> None:
    at = check_stamp(stamp.reply, DATA, asked.certificates, where="kept")
    assert at == stamp.at
    assert abs((datetime.now(UTC) - at).total_seconds()) < 600
    assert signer_name(stamp.reply, where="kept") == "CN=Test time stamps"


def test_openssl_judges_the_same(running: tsa.Authority, stamp: TimeStamp, tmp_path: Path) -> None:
    (tmp_path / "reply").write_bytes(stamp.reply)
    for data, code in ((DATA, 0), (DATA + b" ", 1)):
        (tmp_path / "data").write_bytes(data)
        done = subprocess.run(
            ["openssl", "ts", "-verify", "-in", "reply", "-data", "data", "-CAfile",
             str(running.root)],
            cwd=tmp_path, capture_output=True, check=False,
        )  # fmt: skip
        assert done.returncode == code, done.stderr


def test_a_stamp_of_something_else_or_by_another_authority_is_none(
    asked: Authority, stamp: TimeStamp, tmp_path: Path
) -> None:
    with pytest.raises(BadInput, match="no time stamp of this"):
        check_stamp(stamp.reply, DATA + b" ", asked.certificates, where="kept")
    other = tsa.make_files(tmp_path / "other", "Test time stamps").read_bytes()
    with pytest.raises(BadInput, match="no time stamp of this"):
        check_stamp(stamp.reply, DATA, other, where="kept")


def test_a_damaged_stamp_is_a_sentence_or_says_the_same_time(
    asked: Authority, stamp: TimeStamp
) -> None:
    """What is not signed (padding of the outer form) may change; what it says may not."""
    drawn, refused = random.Random(3), 0
    for _ in range(300):
        at, bit = drawn.randrange(len(stamp.reply)), 1 << drawn.randrange(8)
        changed = bytearray(stamp.reply)
        changed[at] ^= bit
        try:
            assert check_stamp(bytes(changed), DATA, asked.certificates, where="k") == stamp.at
        except BadInput:
            refused += 1
    for length in (0, 1, 20, len(stamp.reply) - 1):
        with pytest.raises(BadInput):
            check_stamp(stamp.reply[:length], DATA, asked.certificates, where="k")
    assert refused > 200


def test_nobody_there_is_said_after_a_few_tries(running: tsa.Authority) -> None:
    waited: list[float] = []
    nobody = Authority("http://127.0.0.1:1/tsa", running.root.read_bytes())
    with pytest.raises(Waiting, match="cannot be reached"):
        ask(nobody, DATA, sleep=waited.append)
    assert len(waited) == TRIES - 1


def test_an_authority_that_the_certificate_is_not_of_gives_no_stamp(
    running: tsa.Authority, tmp_path: Path
) -> None:
    other = tsa.make_files(tmp_path / "other").read_bytes()
    with pytest.raises(Waiting, match="its answer is no time stamp"):
        ask(Authority(running.url, other), DATA, sleep=lambda _: None)


@pytest.mark.parametrize(
    "url",
    [
        "ftp://tsa.example",
        "tsa.example",
        "https://me:secret@tsa.example",
        "http://tsa.example/?k=1",
    ],
)
def test_an_address_that_cannot_stand_in_evidence_is_refused(
    running: tsa.Authority, url: str
) -> None:
    with pytest.raises(BadInput):
        load_authority(url, running.root)


def test_the_root_certificate_is_asked_for(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="--timestamp-ca"):
        load_authority("https://tsa.example", None)
    (tmp_path / "no.pem").write_text("-----BEGIN CERTIFICATE-----\nAAAA\n")
    with pytest.raises(BadInput, match="no certificate"):
        load_authority("https://tsa.example", tmp_path / "no.pem")
