"""A real headless Chromium, driven through its DevTools protocol over a pair of pipes.

https://chromedevtools.github.io/devtools-protocol/. Messages are JSON, each ended by a NUL byte.
No port is opened and nothing beyond Debian's package is needed.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage", "--hide-scrollbars", "--remote-debugging-pipe",
)  # fmt: skip
LIMIT_S = 120.0
"""How long one answer may take on a busy machine."""

Event = dict[str, Any]


class Browser:
    """One process. `close` ends it."""

    def __init__(self, profile: Path) -> None:
        program = shutil.which("chromium")
        assert program, "there is no chromium: apt-get install chromium"
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        # The browser reads its descriptor 3 and writes its descriptor 4.
        join = f'exec "$0" "$@" 3<&{theirs_in} 4>&{theirs_out}'
        self._process = subprocess.Popen(
            ["bash", "-c", join, program, *FLAGS, f"--user-data-dir={profile}", "about:blank"],
            pass_fds=(theirs_in, theirs_out),
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._rest = b""
        self._last = 0
        self.events: list[Event] = []

    def call(self, method: str, session: str = "", **params: Any) -> Any:
        """Send one command; returns its result. Events that come meanwhile are kept."""
        self._last += 1
        number = self._last
        message: Event = {"id": number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        limit = time.monotonic() + LIMIT_S
        while True:
            got = self._next(limit)
            if got.get("id") == number:
                assert "error" not in got, f"{method}: {got['error']}"
                return got["result"]
            self.events.append(got)

    def wait(self, method: str, session: str) -> None:
        """Until an event of this kind has come since `events` was last emptied."""
        limit = time.monotonic() + LIMIT_S
        while not any(
            e.get("method") == method and e.get("sessionId") == session for e in self.events
        ):
            self.events.append(self._next(limit))

    def close(self) -> None:
        """End the browser."""
        self.call("Browser.close")
        self._process.wait(LIMIT_S)
        os.close(self._in)
        os.close(self._out)

    def _next(self, limit: float) -> Event:
        while b"\0" not in self._rest:
            left = limit - time.monotonic()
            assert left > 0 and select.select([self._in], [], [], left)[0], "no answer in time"
            piece = os.read(self._in, 1 << 20)
            assert piece, "the browser has ended"
            self._rest += piece
        line, _, self._rest = self._rest.partition(b"\0")
        found: Event = json.loads(line)
        return found


class Page:
    """One tab. `complaints` holds what its console, its policy or an exception said."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        attached = browser.call("Target.attachToTarget", targetId=self._target, flatten=True)
        self.session: str = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> Any:
        """A command to this tab."""
        return self._browser.call(method, self.session, **params)

    def view(
        self, width: int, height: int, *, dark: bool = False, phone: bool = False, print_: str = ""
    ) -> None:
        """Size in CSS pixels, colour scheme and medium."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=phone,
        )  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media=print_, features=[scheme])

    def open(self, path: Path, fragment: str = "") -> None:
        """Load a file and wait until it has loaded."""
        self._browser.events.clear()
        url = path.resolve().as_uri() + (f"#{fragment}" if fragment else "")
        self.call("Page.navigate", url="about:blank")
        self._browser.wait("Page.loadEventFired", self.session)
        self._browser.events.clear()
        self.call("Page.navigate", url=url)
        self._browser.wait("Page.loadEventFired", self.session)

    def ask(self, expression: str) -> Any:
        """The value of a JavaScript expression; promises are waited for."""
        found = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def press(self, key: str, *, text: str = "", code: str = "") -> None:
        """One key down and up. `text` is what it types."""
        named = {"key": key, "code": code or key, "windowsVirtualKeyCode": CODES.get(key, 0)}
        named |= {"text": text} if text else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", **named)
        self.call("Input.dispatchKeyEvent", type="keyUp", **named)

    def screenshot(self, path: Path, *, whole: bool = False) -> None:
        """A PNG of the window, or of the whole page."""
        got = self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(got["data"]))

    @property
    def requests(self) -> list[str]:
        """Every address that was asked for since the page was opened."""
        return [
            event["params"]["request"]["url"] for event in self._events("Network.requestWillBeSent")
        ]

    @property
    def answered(self) -> list[str]:
        """Every address that gave something."""
        return [e["params"]["response"]["url"] for e in self._events("Network.responseReceived")]

    @property
    def complaints(self) -> list[str]:
        """Console calls, log entries (policy violations among them) and exceptions."""
        kinds = ("Runtime.consoleAPICalled", "Log.entryAdded", "Runtime.exceptionThrown")
        return [json.dumps(event["params"]) for kind in kinds for event in self._events(kind)]

    def close(self) -> None:
        """Close the tab."""
        self._browser.call("Target.closeTarget", targetId=self._target)

    def _events(self, method: str) -> list[Event]:
        self.ask("0")  # what was sent before this answer has arrived
        return [
            event
            for event in self._browser.events
            if event.get("method") == method and event.get("sessionId") == self.session
        ]


CODES = {"Tab": 9, "Enter": 13, "Escape": 27, "End": 35, "Home": 36, "ArrowDown": 40}
