"""Conversations and plain texts: what replay and retention probes consist of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from harness.errors import BadInput
from trainer import contract

PLAIN = "text"
"""The role of a text that is no conversation: it is the only message and is not chat formed."""

CHAT_ROLES = ("system", "user", "assistant")


@dataclass(frozen=True)
class Message:
    """One turn. `role` is system, user, assistant, or text (see PLAIN)."""

    role: str
    content: str


@dataclass(frozen=True)
class Text:
    """A conversation or a plain text. `id` is the SHA-256 of its messages' canonical JSON."""

    messages: tuple[Message, ...]

    @cached_property
    def id(self) -> str:
        """Hex SHA-256 of the content."""
        return contract.hash_of(self.rows())

    def rows(self) -> list[dict[str, str]]:
        """The messages as JSON objects."""
        return [{"role": message.role, "content": message.content} for message in self.messages]


def plain(content: str) -> Text:
    """A text that is no conversation."""
    return Text((Message(PLAIN, content),))


def conversation(*turns: str) -> Text:
    """A conversation of user and assistant in turn, the user first."""
    roles = ("user", "assistant")
    return Text(tuple(Message(roles[i % 2], turn) for i, turn in enumerate(turns)))


@dataclass
class Passed:
    """Texts of a source that a role could not take, and why."""

    repeated: int = 0
    too_long: int = 0


def deal_texts(
    role: str,
    source: Iterable[Text],
    count: int,
    taken: set[str],
    fits: Callable[[Text], bool] = lambda text: True,
) -> tuple[tuple[Text, ...], Passed]:
    """The first `count` texts of a source that are new and that fit; their ids join `taken`.

    Raises BadInput when the source ends before the role is full.
    """
    passed = Passed()
    found: list[Text] = []
    rows: Iterator[Text] = iter(source)
    while len(found) < count:
        text = next(rows, None)
        if text is None:
            raise BadInput(
                f"the role '{role}' needs {count} different texts and its source has {len(found)}"
                f" ({passed.repeated} repeated, {passed.too_long} too long)",
                where="plan#/data",
            )
        if text.id in taken:
            passed.repeated += 1
        elif not fits(text):
            passed.too_long += 1
        else:
            taken.add(text.id)
            found.append(text)
    return tuple(found), passed
