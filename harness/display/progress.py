"""What a person sees while a run goes on: a small interface and its implementations."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Told by the pipeline what happens. Nothing here decides anything."""

    def stage(self, name: str, detail: str = "") -> None:
        """A stage starts."""

    def done(self, name: str, seconds: float) -> None:
        """A stage ended well."""

    def item(
        self,
        key: str,
        text: str,
        *,
        done: int | None = None,
        of: int | None = None,
        rate: float | None = None,
        unit: str = "",
    ) -> None:
        """Long work moved on: `key` names it ('train single'), `text` is what it says now
        ('update 7/16  loss 1.234'), `rate` and `unit` its speed (101.0, 'tok/s').

        Time left is worked out from `done` and `of`. At done == of the item is finished.
        """

    def note(self, text: str) -> None:
        """A sentence that stands on its own line."""

    def close(self) -> None:
        """End live output. Safe to call twice."""
