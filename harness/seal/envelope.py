"""The gzip envelope: plain gzip for every reader, and each of its bytes is bound.

Its header (RFC 1952) has no name, time 0 and one extra field 'HS': the length of the compressed
data (8 bytes, little-endian) and their SHA-256. Deflate has many spellings of the same bytes; with
the field, a changed byte is found although it might decompress to the same tar.
"""

from __future__ import annotations

import hashlib
import os
import struct
import zlib
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from harness.errors import BadInput
from harness.seal.limits import Caps

LEVEL = 6
_CHUNK_BYTES = 1 << 20
_FIXED = b"\x1f\x8b\x08\x04" + bytes(4) + b"\x00\xff" + b"\x2c\x00" + b"HS" + b"\x28\x00"
"""Magic, deflate, extra field, time 0, no flags, unknown system; 44 bytes of one field of 40."""
_HEADER_BYTES = len(_FIXED) + 8 + 32
_TRAILER_BYTES = 8
OVERHEAD_BYTES = _HEADER_BYTES + _TRAILER_BYTES


def write(handle: BinaryIO, chunks: Iterable[bytes]) -> None:
    """Compress `chunks` into a new file that can be sought."""
    handle.write(bytes(_HEADER_BYTES))
    deflate = zlib.compressobj(LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    digest, length, check, size = hashlib.sha256(), 0, 0, 0

    def compressed() -> Iterator[bytes]:
        nonlocal check, size
        for chunk in chunks:
            check, size = zlib.crc32(chunk, check), size + len(chunk)
            yield deflate.compress(chunk)
        yield deflate.flush()

    for piece in compressed():
        digest.update(piece)
        length += len(piece)
        handle.write(piece)
    handle.write(struct.pack("<II", check, size & 0xFFFFFFFF))
    handle.seek(0)
    handle.write(_FIXED + struct.pack("<Q", length) + digest.digest())


class Reader:
    """The uncompressed bytes of an envelope, in bounded memory.

    Opening it checks the compressed bytes whole: header, length, hash. Raises BadInput.
    """

    def __init__(self, handle: BinaryIO, *, caps: Caps) -> None:
        self._handle = handle
        self._caps = caps
        self._length = self._left = _check(handle)
        self._inflate = zlib.decompressobj(-zlib.MAX_WBITS)
        self._check = 0
        self._pending = bytearray()
        self.digest = hashlib.sha256()
        self.size = 0
        """Uncompressed bytes that were inflated so far; `digest` is over the same bytes."""

    def exactly(self, count: int) -> bytes:
        """The next `count` bytes. Raises BadInput when the data end before."""
        while len(self._pending) < count:
            if not self._more(count - len(self._pending)):
                raise BadInput("the archive ends in the middle of a member")
        taken = bytes(self._pending[:count])
        del self._pending[:count]
        return taken

    def pieces(self, count: int) -> Iterator[bytes]:
        """The next `count` bytes in pieces of at most a mebibyte."""
        while count:
            piece = self.exactly(min(count, _CHUNK_BYTES))
            count -= len(piece)
            yield piece

    def finish(self) -> None:
        """Check that nothing is left and the trailer fits. Raises BadInput."""
        if self._pending or self._more(1):
            raise BadInput("the archive goes on after its end")
        if self._left or self._inflate.unused_data or not self._inflate.eof:
            raise BadInput("the compressed data do not end where the archive ends")
        trailer = self._handle.read(_TRAILER_BYTES)
        if trailer != struct.pack("<II", self._check, self.size & 0xFFFFFFFF):
            raise BadInput("the checksum at the end of the archive is wrong")

    def _more(self, count: int) -> bool:
        """Inflate up to `count` bytes more (at least one), or False at the end."""
        piece = b""
        while not piece and not self._inflate.eof:
            source = self._inflate.unconsumed_tail
            if not source:
                source = self._handle.read(min(self._left, _CHUNK_BYTES))
                self._left -= len(source)
            try:
                piece = self._inflate.decompress(source, max(1, min(count, _CHUNK_BYTES)))
            except zlib.error:
                raise BadInput("the compressed data are damaged") from None
            if not source and not piece:
                return False
        self._take(piece)
        return bool(piece)

    def _take(self, piece: bytes) -> None:
        self.size += len(piece)
        check_expansion(self.size, self._length, caps=self._caps)
        self._check = zlib.crc32(piece, self._check)
        self.digest.update(piece)
        self._pending += piece


def check_expansion(size: int, compressed: int, *, caps: Caps) -> None:
    """Refuse a bomb: `size` bytes out of `compressed` ones. Raises BadInput."""
    if size > caps.total_bytes:
        raise BadInput(f"the archive has more than {caps.total_bytes} bytes uncompressed")
    if size > caps.ratio_from_bytes and size > caps.ratio * compressed:
        raise BadInput(f"the archive expands more than {caps.ratio} times")


def _check(handle: BinaryIO) -> int:
    """The length of the compressed data, after header, file size and hash are checked.

    Leaves `handle` at their first byte.
    """
    head = handle.read(_HEADER_BYTES)
    if head[: len(_FIXED)] != _FIXED[: len(head)]:
        raise BadInput("this is not an archive of Harness: its gzip header is another one")
    size = os.fstat(handle.fileno()).st_size
    if len(head) < _HEADER_BYTES:
        raise BadInput(f"the archive is truncated after {size} bytes")
    (length,) = struct.unpack("<Q", head[len(_FIXED) : len(_FIXED) + 8])
    expected = length + OVERHEAD_BYTES
    if size != expected:
        what = "is truncated" if size < expected else "has bytes after its end"
        raise BadInput(f"the archive {what}: {size} bytes where {expected} are declared")
    digest, left = hashlib.sha256(), length
    while left:
        chunk = handle.read(min(left, _CHUNK_BYTES))
        if not chunk:
            raise BadInput("the archive shrank while it was read")
        digest.update(chunk)
        left -= len(chunk)
    if digest.digest() != head[len(_FIXED) + 8 :]:
        raise BadInput("the compressed data are not those that were sealed")
    handle.seek(_HEADER_BYTES)
    return int(length)
