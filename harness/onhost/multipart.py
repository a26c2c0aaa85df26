"""One large object, sent in parts side by side; an interrupted upload goes on where it stopped.

Which upload was begun stands in a record outside the store, because a host's role may list the
parts of an upload that it knows, and may not search for uploads.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import hashlib
import os
import tempfile
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.onhost import s3place
from harness.onhost.command import Fault, read_optional
from harness.onhost.objects import ObjectFault
from harness.onhost.s3place import S3Place, StoreFault
from trainer import contract

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client

PART_BYTES = 16 * 1024 * 1024
MOST_PARTS = 10_000
"""S3 takes no more parts of an upload."""
IN_FLIGHT = 8
TRIES = 3


class Part(NamedTuple):
    """A part that the store has."""

    number: int
    etag: str
    checksum: str


def part_bytes(size: int) -> int:
    """Bytes of every part but the last: the same for the same size, always."""
    least = -(-size // MOST_PARTS)
    return max(PART_BYTES, -(-least // PART_BYTES) * PART_BYTES)


def checksum(path: Path, size: int) -> str:
    """The composite SHA-256 that S3 keeps of a file sent in our parts ('BASE64-N')."""
    whole, count = hashlib.sha256(), 0
    for data in _parts(path, size):
        whole.update(hashlib.sha256(data).digest())
        count += 1
    return f"{base64.b64encode(whole.digest()).decode()}-{count}"


def record_folder() -> Path:
    """Where unfinished uploads are remembered: the temporary folder of this user or host."""
    return Path(tempfile.gettempdir()) / f"harness-uploads-{os.getuid()}"


@dataclass(frozen=True)
class Upload:
    """A file on its way to the store."""

    client: S3Client
    place: S3Place
    pool: ThreadPoolExecutor
    path: Path
    sha256: str
    size: int

    @property
    def key(self) -> str:
        """The object's key."""
        return self.place.key(self.sha256)

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """One upload of an object at a time on this machine: they would share their parts."""
        self._record.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(self._record.with_suffix(".lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def run(self) -> str | None:
        """The new object's version id ('' without versions); null: somebody else stored it.
        To be called `alone`.

        Raises ObjectFault (the file changed) and StoreFault; after the second the parts stay and
        the next call goes on with them.
        """
        for _ in range(TRIES):
            upload, have = self._begun()
            if upload is None:
                upload, have = self._begin(), {}
            parts = self._send(upload, have)
            try:
                answer = self.client.complete_multipart_upload(
                    **self._named(upload), IfNoneMatch="*",
                    MultipartUpload={"Parts": [self._listed(part) for part in parts]},
                )  # fmt: skip
            except s3place.request_errors() as error:
                status = s3place.status_of(error)
                if status not in (404, 409, 412):
                    raise self._said(error, "completing the upload") from None
                self._abort(upload)
                if status == 412:
                    return None
                continue  # 409, or 404: another request ended this upload; send all parts anew
            self._record.unlink(missing_ok=True)
            found = answer.get("VersionId", "")
            return "" if found == "null" else found
        raise StoreFault(f"{self.place.locate(self.sha256)}: others write it at the same time.")

    @property
    def _record(self) -> Path:
        mark = contract.sha256(f"{self.place.address()}\n{self.key}".encode())
        return record_folder() / f"{mark}.json"

    def _named(self, upload: str) -> dict[str, Any]:
        return {**self.place.owned(), "Key": self.key, "UploadId": upload}

    def _begun(self) -> tuple[str | None, dict[int, Part]]:
        """An upload of this object that was interrupted, and the parts that it has."""
        try:
            known = read_optional(self._record)
        except contract.ContractError:
            known = None
        if known is None or known.get("part_bytes") != part_bytes(self.size):
            return None, {}
        upload = str(known["upload"])
        pages = self.client.get_paginator("list_parts")
        have: dict[int, Part] = {}
        try:
            for page in pages.paginate(**self._named(upload)):
                for row in page.get("Parts", []):
                    number = row["PartNumber"]
                    have[number] = Part(number, row["ETag"], row.get("ChecksumSHA256", ""))
        except s3place.request_errors() as error:
            if s3place.status_of(error) == 404:  # ended, or swept by the bucket's lifecycle
                return None, {}
            raise self._said(error, "looking for the parts of an upload") from None
        return upload, have

    def _begin(self) -> str:
        more: dict[str, Any] = {"ChecksumAlgorithm": "SHA256"} if self.place.checksums else {}
        try:
            answer = self.client.create_multipart_upload(**self.place.owned(), Key=self.key, **more)
        except s3place.request_errors() as error:
            raise self._said(error, "beginning an upload") from None
        upload = answer["UploadId"]
        contract.write_json(self._record, {"upload": upload, "part_bytes": part_bytes(self.size)})
        return upload

    def _send(self, upload: str, have: dict[int, Part]) -> list[Part]:
        """Send what the store has not; all parts in order. Raises ObjectFault when it changed."""
        digest, sent = hashlib.sha256(), list[Part]()
        waiting: deque[Future[Part]] = deque()
        try:
            for number, data in enumerate(_parts(self.path, self.size), start=1):
                digest.update(data)
                waiting.append(self.pool.submit(self._part, upload, number, data, have.get(number)))
                if len(waiting) >= IN_FLIGHT:
                    sent.append(waiting.popleft().result())
            sent += [future.result() for future in waiting]
        except s3place.request_errors() as error:
            raise self._said(error, "sending a part") from None
        finally:
            for future in waiting:
                future.cancel()
        if digest.hexdigest() != self.sha256:
            self._abort(upload)
            raise ObjectFault("changed", f"{self.path} changed while it was stored.")
        return sent

    def _part(self, upload: str, number: int, data: bytes, known: Part | None) -> Part:
        own = base64.b64encode(hashlib.sha256(data).digest()).decode()
        if known is not None and own == (known.checksum or _by_etag(known, data, own)):
            return Part(number, known.etag, own)
        more: dict[str, Any] = {"ChecksumSHA256": own} if self.place.checksums else {}
        answer = self.client.upload_part(
            **self._named(upload), PartNumber=number, Body=data, **more
        )
        return Part(number, answer["ETag"], own)

    def _listed(self, part: Part) -> Any:
        listed = {"PartNumber": part.number, "ETag": part.etag}
        return listed | ({"ChecksumSHA256": part.checksum} if self.place.checksums else {})

    def _abort(self, upload: str) -> None:
        """Remove what was sent; what this misses the bucket's lifecycle rule removes."""
        self._record.unlink(missing_ok=True)
        try:
            self.client.abort_multipart_upload(**self._named(upload))
        except s3place.request_errors():
            return

    def _said(self, error: Exception, doing: str) -> Fault:
        return s3place.meaning(error, self.place, self.key, doing)


def _by_etag(known: Part, data: bytes, own: str) -> str:
    """`own` when the part's ETag is the MD5 of `data`, for stores that list no checksums.

    An ETag that is none (server-side KMS keys) differs, and the part is sent again.
    """
    md5 = hashlib.md5(data, usedforsecurity=False).hexdigest()
    return own if known.etag.strip('"') == md5 else ""


def _parts(path: Path, size: int) -> Iterator[bytes]:
    with open(path, "rb") as handle:
        while data := handle.read(part_bytes(size)):
            yield data
