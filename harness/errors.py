"""One family of errors. Each says what, where and the next command; only the command line exits.

Exit codes (design): 2 bad input, 3 a refused invariant, 4 a failed or waiting arm or host with the
run resumable, 5 a lost or leaked resource.
"""

from __future__ import annotations

import shlex


def command(*words: object) -> str:
    """A command of ours to type, safe for a shell whatever the paths hold."""
    return shlex.join(["harness", *map(str, words)])


class HarnessError(Exception):
    """A mistake or a refusal that a person can act on: one sentence, a place, a next command."""

    exit_code = 1
    kind = "error"

    def __init__(self, what: str, *, where: str = "", next_command: str = "") -> None:
        super().__init__(what)
        self.what = what.rstrip(".")
        self.where = where
        self.next_command = next_command

    def sentence(self) -> str:
        """The error as it is printed (without the next command)."""
        return f"{self.where}: {self.what}." if self.where else f"{self.what}."

    def __str__(self) -> str:
        return self.sentence()


class BadInput(HarnessError):
    """A plan, file, flag or value that cannot be used as it is."""

    exit_code = 2
    kind = "bad input"


class Refused(HarnessError):
    """An invariant that would be broken, so nothing was done."""

    exit_code = 3
    kind = "refused"


class Waiting(HarnessError):
    """An arm or host failed, or a person must act; the run goes on with the same command."""

    exit_code = 4
    kind = "stopped, resumable"


class Incomplete(HarnessError):
    """A study ended and is preserved, and not all of it was measured."""

    exit_code = 4
    kind = "incomplete"


class Leaked(HarnessError):
    """A resource that is lost or still there. `where` names its id."""

    exit_code = 5
    kind = "lost or leaked"
