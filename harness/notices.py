"""Notices to a person who is not looking: a command or web hook of the user's own.

The text goes to a command's standard input, to a web hook as a JSON body {"event", "text", "run"}.
Each is given once: it stands in the journal before it is given, and what stands there is not given
again. Giving goes on beside the study; one that fails or hangs is said and changes nothing else.
The target may hold a secret (a web hook's address does): it is never shown, kept or passed on.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import threading
import time
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal

from harness.errors import HarnessError
from harness.journal import Journal
from trainer import contract

Event = Literal["arm ended", "failure", "deadline near"]
NEAR_S = 1800.0
LIMIT_S = 20.0


@dataclass
class Notices:
    """`target`: empty (nobody is told), an http(s) address, or a command line."""

    target: str
    run: str
    complain: Callable[[str], None]
    """Told when a notice could not be given."""
    journal: Journal
    limit_s: float = LIMIT_S
    """What giving one notice may take."""
    _timer: threading.Timer | None = field(default=None)
    _going: list[threading.Thread] = field(default_factory=list)
    _claiming: threading.Lock = field(default_factory=threading.Lock)

    def tell(self, event: Event, text: str, *, about: str = "") -> None:
        """Give one notice, unless the journal says that the one `about` this was given.

        Returns at once. `about` names what the notice is about among those of its event; absent:
        the text does.
        """
        if not self.target or not self._claimed(event, about or text):
            return
        body = json.dumps({"event": event, "text": text, "run": self.run}).encode()
        thread = threading.Thread(target=self._give, args=(event, body), daemon=True)
        self._going.append(thread)
        thread.start()

    def _claimed(self, event: Event, about: str) -> bool:
        key = f"notice/{event}/{contract.sha256(about.encode())[:16]}"
        with self._claiming:
            if self.journal.find("note", key) is not None:
                return False
            try:
                self.journal.note(key, {"event": event})
            except (HarnessError, ValueError):  # ValueError: the run was let go meanwhile
                return False
            return True

    def _give(self, event: Event, body: bytes) -> None:
        try:
            if self.target.startswith(("http://", "https://")):
                asked = urllib.request.Request(
                    self.target, data=body, headers={"Content-Type": "application/json"}
                )
                urllib.request.urlopen(asked, timeout=self.limit_s).close()
            else:
                subprocess.run(
                    shlex.split(self.target), input=body + b"\n", timeout=self.limit_s, check=True,
                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
                )  # fmt: skip
        except Exception as error:  # whatever it is, it is not the study's
            self.complain(f"the notice '{event}' could not be given ({type(error).__name__})")

    def watch_deadline(self, left_s: float, deadline_utc: str) -> None:
        """Tell once, 30 minutes before the deadline (at once when it is nearer)."""
        if not self.target or self._timer is not None or left_s <= 0:
            return
        said = f"the deadline at {deadline_utc} is 30 minutes away or less"
        self._timer = threading.Timer(
            max(0.0, left_s - NEAR_S),
            self.tell,
            args=("deadline near", said),
            kwargs={"about": deadline_utc},
        )
        self._timer.daemon = True
        self._timer.start()

    def close(self) -> None:
        """No more notices; those that are being given have until their limit."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer.join()
        until = time.monotonic() + self.limit_s
        for thread in self._going:
            with suppress(RuntimeError):
                thread.join(max(0.0, until - time.monotonic()))
            if thread.is_alive():
                self.complain("a notice is still being given and was left alone")
