"""A store that cannot be used now says why in one sentence, and nothing is taken for done."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest

from harness.errors import Leaked, Waiting
from harness.onhost import multipart, ranges, s3objects
from harness.onhost.command import Fault
from harness.onhost.s3objects import S3Objects
from harness.onhost.s3place import S3Place, StoreFault
from harness.store.protocol import Artifact
from harness.store.s3 import S3Store
from tests.unit.store.bucket_server import BucketServer, refuse


@pytest.mark.parametrize(
    ("status", "code", "words"),
    [
        (400, "ExpiredToken", "the credentials expired while reading it; renew them"),
        (403, "RequestTimeTooSkewed", "this machine's clock is too far off for S3; set it"),
        (403, "AccessDenied", "lacks s3:ListBucket on study (a missing key reads as 403 then)"),
        (404, "NoSuchBucket", "there is no such bucket"),
        (301, "PermanentRedirect", "is not in us-east-1"),
    ],
)
def test_a_refused_read_is_waiting_and_says_why(
    objects: S3Objects, server: BucketServer, tmp_path: Path, status: int, code: str, words: str
) -> None:
    store = S3Store(objects.place)
    artifact = store.put_bytes(b"hello", name="weights")
    server.rules.append(refuse(status, code, method="GET"))
    with pytest.raises(Waiting) as caught:
        store.fetch(artifact, tmp_path / "new" / "copy")
    assert words in caught.value.sentence() and "\n" not in caught.value.sentence()
    assert list((tmp_path / "new").iterdir()) == []


def test_credentials_that_expire_in_the_middle_leave_no_half_file(
    objects: S3Objects, server: BucketServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(s3objects, "PART_BYTES", 1 << 16)
    store = S3Store(objects.place)
    artifact = store.put_bytes(os.urandom(40 << 16), name="weights")
    server.rules.append(refuse(400, "ExpiredToken", method="GET", after=20))
    with pytest.raises(Waiting, match="the credentials expired while reading it"):
        store.fetch(artifact, tmp_path / "new" / "copy")
    assert list((tmp_path / "new").iterdir()) == []
    server.rules.clear()
    store.fetch(artifact, tmp_path / "new" / "copy")


def test_a_missing_key_without_permission_to_list_is_no_missing_object(
    objects: S3Objects, server: BucketServer
) -> None:
    server.rules.append(refuse(403, "", method="HEAD"))  # what S3 answers then, without a body
    with pytest.raises(Waiting, match="s3:ListBucket"):
        S3Store(objects.place).has("0" * 64)


def test_a_missing_object_is_lost(objects: S3Objects, tmp_path: Path) -> None:
    with pytest.raises(Leaked, match="is not there"):
        S3Store(objects.place).fetch(
            Artifact(name="weights", sha256="0" * 64, bytes=1), tmp_path / "copy"
        )


def test_no_credentials_at_all(objects: S3Objects, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", "/nonexistent")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
    with pytest.raises(Waiting, match=r"[Uu]nable to locate credentials"):
        S3Store(objects.place).has("0" * 64)


def test_nobody_answers() -> None:
    place = S3Place("bucket", "study", "us-east-1", endpoint="http://127.0.0.1:1")
    with pytest.raises(Waiting, match="looking for the object failed"):
        S3Store(place).has("0" * 64)


def test_the_bucket_must_be_there_and_its_owners(objects: S3Objects, server: BucketServer) -> None:
    S3Store(objects.place).check()
    gone = S3Place("no-such-bucket", "study", "us-east-1", endpoint=server.endpoint)
    with pytest.raises(Waiting, match="there is no such bucket"):
        S3Store(gone).check()
    server.rules.append(refuse(403, "", method="HEAD"))  # S3's answer to a wrong expected owner
    with pytest.raises(Waiting, match=f"another account than {objects.place.owner} owns"):
        S3Store(objects.place).check()


def test_the_expected_owner_goes_with_every_request(
    objects: S3Objects, server: BucketServer, tmp_path: Path
) -> None:
    told: list[str] = []
    server.rules.append(
        lambda environ: told.append(environ.get("HTTP_X_AMZ_EXPECTED_BUCKET_OWNER", ""))
    )
    path = tmp_path / "file"
    path.write_bytes(os.urandom(multipart.PART_BYTES + 1))
    stored = objects.put_file(path)
    objects.put_bytes(b"x")
    list(objects.list())
    objects.fetch(stored.sha256, stored.bytes, tmp_path / "copy")
    assert len(told) > 8 and set(told) == {objects.place.owner}


def test_a_cut_connection_is_asked_again(
    objects: S3Objects, server: BucketServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server promises a range and closes half way; the next answer is whole."""
    monkeypatch.setattr(s3objects, "PART_BYTES", 1 << 16)
    data = os.urandom(3 << 16)
    stored = objects.put_bytes(data)
    cuts: list[str] = []

    def cut(environ: dict[str, Any]) -> None:
        if environ["REQUEST_METHOD"] == "GET" and len(cuts) < 2:
            cuts.append(environ["HTTP_RANGE"])
            socket = environ["werkzeug.socket"]
            socket.sendall(b"HTTP/1.1 206 x\r\nContent-Length: 65536\r\n\r\nhalf")
            socket.shutdown(2)

    server.rules.append(cut)
    assert b"".join(objects.chunks(stored.sha256, stored.version)) == data
    assert len(cuts) == 2


def test_an_object_replaced_in_the_middle_is_not_mixed(
    objects: S3Objects, server: BucketServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bucket without versions: only If-Match tells."""
    monkeypatch.setattr(s3objects, "PART_BYTES", 1 << 16)
    plain = server.make("plain-bucket", versioned=False)
    data = os.urandom(40 << 16)
    stored = plain.put_bytes(data)
    assert stored.version == ""
    pieces = plain.chunks(stored.sha256)
    next(pieces)
    plain.client.put_object(
        Bucket="plain-bucket", Key=plain.place.key(stored.sha256), Body=bytes(len(data))
    )
    with pytest.raises(Fault, match="was replaced while it was read"):
        list(pieces)


def test_memory_is_bounded_by_the_pieces_in_flight() -> None:
    """Nothing is asked for that the consumer has not made room for."""
    from concurrent.futures import ThreadPoolExecutor

    asked: list[int] = []
    lock = threading.Lock()

    def fetch(start: int, length: int) -> bytes:
        with lock:
            asked.append(start)
        return bytes([start // 10]) * length

    with ThreadPoolExecutor(8) as pool:
        stream = ranges.in_order(fetch, 995, pool=pool, in_flight=4, part_bytes=10)
        taken = []
        for count, piece in enumerate(stream, start=1):
            taken.append(piece)
            assert len(asked) <= count + 4
    assert b"".join(taken) == b"".join(bytes([n]) * 10 for n in range(100))[:995]
    assert sorted(asked) == list(range(0, 995, 10))


def test_a_store_that_is_not_aws_gets_no_checksum_headers(
    server: BucketServer, tmp_path: Path
) -> None:
    """Such stores have been seen to keep a checksum trailer inside the object."""
    objects = server.make("other-store", checksums=False)
    headers: set[str] = set()
    server.rules.append(lambda environ: headers.update(environ))
    path = tmp_path / "file"
    path.write_bytes(os.urandom(multipart.PART_BYTES + 1))
    stored = objects.put_file(path)
    objects.put_bytes(b"x")
    objects.fetch(stored.sha256, stored.bytes, tmp_path / "copy")
    assert not {name for name in headers if "CHECKSUM" in name or "TRAILER" in name}
    assert "HTTP_X_AMZ_CONTENT_SHA256" in headers
    assert objects.put_file(path) == stored


def test_a_full_disk_while_fetching_is_waiting_and_leaves_nothing(
    objects: S3Objects, small_disk: Path
) -> None:
    store = S3Store(objects.place)
    artifact = store.put_bytes(os.urandom(2 << 20), name="weights")
    with pytest.raises(Waiting, match=r"has no room left \(No space left on device\)"):
        store.fetch(artifact, small_disk / "copy")
    assert list(small_disk.iterdir()) == []


@pytest.mark.parametrize("missing", ["bucket", "prefix", "region"])
def test_an_address_that_is_not_whole_is_named(missing: str) -> None:
    address = {"bucket": "b", "prefix": "p", "region": "r"}
    del address[missing]
    with pytest.raises(Fault, match=f"has no '{missing}'"):
        S3Place.parse(address)


def test_a_hash_is_not_a_key() -> None:
    with pytest.raises(Fault, match="is not a SHA-256"):
        S3Place("b", "p", "r").key("../" * 21 + "a")


def test_an_upload_that_fails_is_remembered_and_said(
    objects: S3Objects, server: BucketServer, tmp_path: Path
) -> None:
    path = tmp_path / "file"
    path.write_bytes(os.urandom(multipart.PART_BYTES + 1))
    server.rules.append(refuse(403, "AccessDenied", method="POST", query="uploads"))
    with pytest.raises(StoreFault, match="beginning an upload is denied"):
        objects.put_file(path)
