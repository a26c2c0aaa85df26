"""The fleet's journal, mirrored to the bucket after every entry that matters elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

from harness.clock import Clock
from harness.cloud.clients import Aws
from harness.fleet.admitted import AdmittedFleet
from harness.journal import Entry, Journal
from harness.launch.fleets import FleetPlace


class FleetJournal(Journal):
    """The same journal; a copy goes to the bucket. A copy that fails is said and stops nothing."""

    def __init__(
        self, place: FleetPlace, clock: Clock, aws: Aws, say: Callable[[str], None]
    ) -> None:
        super().__init__(place.journal_path, clock, of="fleet")
        self._admitted = place.admitted
        self._aws = aws
        self._say = say
        self._failed = False

    def append(self, kind: Literal["intent", "outcome", "receipt", "note"], key: str,
               data: dict[str, Any]) -> Entry:  # fmt: skip
        """Write one entry here, then copy the journal; outcomes and receipts only."""
        entry = super().append(kind, key, data)
        if kind in ("outcome", "receipt"):
            self.copy()
        return entry

    def copy(self) -> bool:
        """Put the journal into the bucket. False: it could not be, which is said once."""
        try:
            self._aws.session.client("s3").put_object(
                Bucket=self._admitted.bucket,
                Key=mirror_key(self._admitted),
                Body=self.path.read_bytes(),
            )
        except Exception as error:  # whatever boto3 raises: the journal itself is whole here
            if not self._failed:
                self._say(
                    f"the fleet's journal is not mirrored ({' '.join(str(error).split())[:160]})"
                )
            self._failed = True
            return False
        self._failed = False
        return True


def mirror_key(admitted: AdmittedFleet) -> str:
    """Where the copy lies in the bucket."""
    from harness.fleet.places import fleet_folder

    return f"{fleet_folder(admitted)}journal.jsonl"


@contextmanager
def driving(
    place: FleetPlace, clock: Clock, aws: Aws, say: Callable[[str], None]
) -> Iterator[FleetJournal]:
    """The fleet's journal, held by this process alone. Raises Waiting when another one drives."""
    journal = FleetJournal(place, clock, aws, say)
    try:
        yield journal
    finally:
        journal.close()
