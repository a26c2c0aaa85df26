"""A store in a bucket: `Store` over the helper's own S3 objects. boto3 is imported when used."""

from __future__ import annotations

from harness.onhost.command import Fault
from harness.onhost.s3objects import S3Objects
from harness.onhost.s3place import S3Place
from harness.store.objects import ObjectStore, as_error


class S3Store(ObjectStore):
    """Objects below `place`, written once."""

    def __init__(self, place: S3Place) -> None:
        self.place = place
        self._objects = S3Objects(place)
        super().__init__(self._objects)

    @property
    def kind(self) -> str:
        """'s3'."""
        return "s3"

    def address(self) -> str:
        """JSON text for `harness.onhost.stage` and `.readback`."""
        return self.place.address()

    def check(self) -> None:
        """Raises Waiting unless the bucket is there, in its region, and its owner's."""
        try:
            self._objects.check()
        except Fault as fault:
            raise as_error(fault, "") from None

    def has(self, sha256: str) -> bool:
        """Whether an object of that name is there (its bytes are not read). Raises Waiting."""
        try:
            return self._objects.head(sha256) is not None
        except Fault as fault:
            raise as_error(fault, sha256) from None

    def locate(self, sha256: str) -> str:
        """The object's s3:// address."""
        return self.place.locate(sha256)
