"""Notices to a person who is not looking: a command or web hook of the user's own.

The text goes to a command's standard input, to a web hook as a JSON body {"event", "text", "run"}.
A notice that fails is said and changes nothing else.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import threading
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

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
    _timer: threading.Timer | None = field(default=None)

    def tell(self, event: Event, text: str) -> None:
        """Give one notice; waits at most 20 s."""
        if not self.target:
            return
        body = json.dumps({"event": event, "text": text, "run": self.run}).encode()
        try:
            if self.target.startswith(("http://", "https://")):
                asked = urllib.request.Request(
                    self.target, data=body, headers={"Content-Type": "application/json"}
                )
                urllib.request.urlopen(asked, timeout=LIMIT_S).close()
            else:
                subprocess.run(
                    shlex.split(self.target), input=body + b"\n", timeout=LIMIT_S, check=True,
                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                )  # fmt: skip
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            self.complain(f"the notice '{event}' could not be given ({type(error).__name__})")

    def watch_deadline(self, left_s: float, deadline_utc: str) -> None:
        """Tell once, 30 minutes before the deadline (at once when it is nearer)."""
        if not self.target or self._timer is not None or left_s <= 0:
            return
        said = f"the deadline at {deadline_utc} is 30 minutes away or less"
        self._timer = threading.Timer(
            max(0.0, left_s - NEAR_S), self.tell, args=("deadline near", said)
        )
        self._timer.daemon = True
        self._timer.start()

    def close(self) -> None:
        """No more notices."""
        if self._timer is not None:
            self._timer.cancel()
