"""Objects in a bucket: named by the SHA-256 of their bytes, written once, read in ranges.

Sources: Amazon S3 API reference (PutObject, CompleteMultipartUpload: If-None-Match; GetObject:
Range, If-Match, versionId) and "Checking object integrity in Amazon S3".
"""

from __future__ import annotations

import base64
import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.onhost import multipart, s3place
from harness.onhost.command import Fault
from harness.onhost.objects import ObjectFault, Stored, copy_checked, no_room
from harness.onhost.ranges import PART_BYTES, in_order
from harness.onhost.s3place import S3Place, StoreFault
from trainer import contract

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client

IN_FLIGHT = 24
TRIES = 6


@dataclass(frozen=True)
class Head:
    """What the store says about an object, without its bytes."""

    bytes: int
    etag: str
    version: str
    """Empty in a bucket without versions."""
    checksum: str
    """Base64 SHA-256 of the whole, or 'BASE64-N' of N parts; empty: the store keeps none."""


class S3Objects:
    """Objects below `place`. Threads and processes may use it at once."""

    def __init__(self, place: S3Place, *, in_flight: int = IN_FLIGHT) -> None:
        self.place = place
        self.in_flight = in_flight
        self.pool = ThreadPoolExecutor(in_flight, thread_name_prefix="s3")
        self._share = in_flight
        self._lock = threading.Lock()
        self._client: S3Client | None = None

    @property
    def client(self) -> S3Client:
        """Made when first needed."""
        with self._lock:
            if self._client is None:
                self._client = s3place.make_client(self.place)
            return self._client

    def readers(self, count: int) -> None:
        """How many objects are read at once: each gets its share of the pieces in flight."""
        self._share = max(2, self.in_flight // max(1, count))

    def check(self) -> None:
        """Ask whether the bucket is there, where, and whose. Raises StoreFault."""
        try:
            answer = self.client.head_bucket(**self.place.owned())
        except s3place.request_errors() as error:
            if s3place.code_of(error) == "404":
                raise StoreFault(f"s3://{self.place.bucket}: there is no such bucket.") from None
            raise s3place.meaning(error, self.place, "", "asking for the bucket") from None
        found = answer.get("BucketRegion")
        if found and found != self.place.region and not self.place.endpoint:
            raise StoreFault(
                f"s3://{self.place.bucket} is in {found} and not in {self.place.region}."
            )

    def head(self, sha256: str, version: str = "") -> Head | None:
        """What is there under that name; null: nothing. Raises StoreFault."""
        key = self.place.key(sha256)
        asked: dict[str, Any] = {"Key": key, **_pinned(version)}
        if self.place.checksums:
            asked["ChecksumMode"] = "ENABLED"
        try:
            answer = self.client.head_object(**self.place.owned(), **asked)
        except s3place.request_errors() as error:
            meant = s3place.meaning(error, self.place, key, "looking for the object")
            if isinstance(meant, ObjectFault) or _no_version(error):
                return None
            raise meant from None
        return Head(
            bytes=answer["ContentLength"],
            etag=answer["ETag"],
            version=_version(answer),
            checksum=answer.get("ChecksumSHA256", ""),
        )

    def version_now(self, sha256: str) -> str:
        """The version that the name stands for now; '' without versions. Raises ObjectFault."""
        head = self.head(sha256)
        if head is None:
            raise ObjectFault("missing", f"{self.place.locate(sha256)} is not there.")
        return head.version

    def put_file(self, path: Path) -> Stored:
        """Store a file, once. Raises ObjectFault (changed; a broken one is there), StoreFault."""
        sha256, size = contract.hash_file(path)
        if size > multipart.PART_BYTES:
            return self._put_large(path, sha256, size)
        data = path.read_bytes()
        if contract.sha256(data) != sha256:
            raise ObjectFault("changed", f"{path} changed while it was stored.")
        return self._put(sha256, data)

    def put_bytes(self, data: bytes) -> Stored:
        """Store bytes, once. Raises as `put_file`."""
        return self._put(contract.sha256(data), data)

    def chunks(self, sha256: str, version: str = "") -> Iterator[bytes]:
        """An object's bytes in order, all of one version. Raises ObjectFault, StoreFault."""
        head = self.head(sha256, version)
        if head is None:
            raise ObjectFault("missing", f"{self.place.locate(sha256)} is not there.")
        yield from self.pieces(sha256, head)

    def pieces(self, sha256: str, head: Head) -> Iterator[bytes]:
        """The bytes of exactly what `head` saw: other bytes under the same name are an error."""
        key = self.place.key(sha256)

        def fetch(start: int, length: int) -> bytes:
            return self._range(key, head, start, length)

        return in_order(
            fetch, head.bytes, pool=self.pool, in_flight=self._share, part_bytes=PART_BYTES
        )

    def fetch(self, sha256: str, size: int, target: Path, version: str = "") -> None:
        """Write an object to a new file, checked while it is written. Raises ObjectFault, ..."""
        with open(target, "xb") as out:
            try:
                copy_checked(self.chunks(sha256, version), sha256, size, out.write)
                out.flush()
                os.fsync(out.fileno())
            except OSError as error:
                raise no_room(error, target) from None

    def list(self) -> Iterator[tuple[str, int]]:
        """(hash, size) of every object, in order of their hashes. Raises StoreFault."""
        pages = self.client.get_paginator("list_objects_v2")
        base = self.place.base
        try:
            for page in pages.paginate(**self.place.owned(), Prefix=base):
                for row in page.get("Contents", []):
                    yield row["Key"].removeprefix(base), row["Size"]
        except s3place.request_errors() as error:
            raise s3place.meaning(error, self.place, base, "listing objects") from None

    def _put(self, sha256: str, data: bytes) -> Stored:
        key = self.place.key(sha256)
        more: dict[str, Any] = {}
        if self.place.checksums:
            more["ChecksumSHA256"] = base64.b64encode(bytes.fromhex(sha256)).decode()
        for number in range(1, TRIES + 1):
            try:
                answer = self.client.put_object(
                    **self.place.owned(), Key=key, Body=data, IfNoneMatch="*", **more
                )
            except s3place.request_errors() as error:
                status = s3place.status_of(error)
                if status == 412:
                    return self._there(sha256, len(data))
                if status == 409 and number < TRIES:  # another writer of this key is not done yet
                    time.sleep(0.2 * number)
                    continue
                raise s3place.meaning(error, self.place, key, "storing it") from None
            return Stored(sha256, len(data), _version(answer))
        raise AssertionError("the last try returns or raises")

    def _put_large(self, path: Path, sha256: str, size: int) -> Stored:
        job = multipart.Upload(
            client=self.client, place=self.place, pool=self.pool, path=path, sha256=sha256,
            size=size,
        )  # fmt: skip
        with job.alone():
            there = self.head(sha256) is not None
            version = None if there else job.run()
        if version is None:  # it is there, or somebody else stored it meanwhile
            return self._there(sha256, size, path)
        return Stored(sha256, size, version)

    def _there(self, sha256: str, size: int, path: Path | None = None) -> Stored:
        """What is there under the name, verified: by the store's own SHA-256, else by reading it.

        Raises ObjectFault when it is something else.
        """
        head = self.head(sha256)
        if head is None:
            raise StoreFault(f"{self.place.locate(sha256)} was there and is gone again.")
        if head.bytes != size:
            raise ObjectFault(
                "truncated", f"{self.place.locate(sha256)} has {head.bytes} bytes, not {size}."
            )
        whole = base64.b64encode(bytes.fromhex(sha256)).decode()
        composite = path is not None and "-" in head.checksum
        if head.checksum != whole and not (
            composite and path is not None and head.checksum == multipart.checksum(path, size)
        ):
            copy_checked(self.pieces(sha256, head), sha256, size, lambda piece: None)
        return Stored(sha256, size, head.version)

    def _range(self, key: str, head: Head, start: int, length: int) -> bytes:
        """One piece; a cut connection is asked again. Raises ObjectFault, StoreFault."""
        asked: dict[str, Any] = {"Key": key, "IfMatch": head.etag, **_pinned(head.version)}
        asked["Range"] = f"bytes={start}-{start + length - 1}"
        cut = s3place.network_errors()
        for number in range(1, TRIES + 1):
            try:
                answer = self.client.get_object(**self.place.owned(), **asked)
                data = answer["Body"].read()
                if len(data) == length:
                    return data
            except cut as error:
                if number == TRIES:
                    raise s3place.meaning(error, self.place, key, "reading it") from None
            except s3place.request_errors() as error:
                raise self._unreadable(error, key) from None
            time.sleep(0.1 * 2**number)
        raise StoreFault(f"s3://{self.place.bucket}/{key}: answers are cut short again and again.")

    def _unreadable(self, error: Exception, key: str) -> Fault:
        status = s3place.status_of(error)
        where = f"s3://{self.place.bucket}/{key}"
        if status == 412:
            return ObjectFault("replaced", f"{where} was replaced while it was read.")
        if status == 416:
            return ObjectFault("truncated", f"{where} ends before its own size.")
        if _no_version(error):
            return ObjectFault("missing", f"{where} is not there in that version.")
        return s3place.meaning(error, self.place, key, "reading it")


def _pinned(version: str) -> dict[str, str]:
    return {"VersionId": version} if version else {}


def _no_version(error: Exception) -> bool:
    """A version id that no object has is a bad argument or a delete marker to S3."""
    answer: dict[str, Any] = getattr(error, "response", {}) or {}
    told = answer.get("Error", {})
    return s3place.status_of(error) == 405 or (
        s3place.status_of(error) == 400 and "version" in str(told.get("Message", "")).lower()
    )


def _version(answer: Any) -> str:
    found = answer.get("VersionId", "")
    return "" if found == "null" else str(found)
