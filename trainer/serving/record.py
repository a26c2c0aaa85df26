"""served-0.jsonl: what this replica did for each request, in the order it happened."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from trainer.contract import canonical


class Record:
    """One write a line, so that a process that is killed leaves whole lines."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._began = time.monotonic()

    def write(self, event: str, request: str, **fields: Any) -> None:
        """Add a line; `at` is seconds since this record began."""
        at = round(time.monotonic() - self._began, 6)
        line = {"event": event, "request": request, "at": at, **fields}
        os.write(self._file, canonical(line) + b"\n")
