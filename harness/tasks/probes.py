"""Where texts come from: generated conversations, passages, or rows of a hub data set."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from harness.errors import BadInput
from harness.plan.data import GeneratedReplay, HubText, Passages
from harness.tasks.draws import Draws
from harness.tasks.passages import passages
from harness.tasks.replay import conversations
from harness.tasks.texts import CHAT_ROLES, Message, Text, plain

ReadRows = Callable[[HubText], Sequence[Any]]
"""Gives the declared column of every row of a hub data set's file."""


def texts_of(
    source: GeneratedReplay | HubText | Passages, *, seed: str, role: str, read_rows: ReadRows
) -> Iterator[Text]:
    """The texts of a source in the order in which seed and role deal them."""
    if isinstance(source, GeneratedReplay):
        yield from conversations(seed, role)
    elif isinstance(source, Passages):
        yield from passages(seed, role)
    else:
        where = f"{source.repo}/{source.file}"
        rows = read_rows(source)
        for index in Draws(seed, role, "rows").shuffled(range(len(rows))):
            text = text_of_row(rows[index], where=f"{where} row {index}")
            if text is not None:
                yield text


def text_of_row(value: Any, *, where: str) -> Text | None:
    """A text column's string, or a column of messages (a list of role and content).

    None for a row without anything to predict: an empty text, or no assistant's turn. A turn that
    the user has after the last answer is left out. Raises BadInput for any other form.
    """
    if isinstance(value, str):
        return plain(value) if value.strip() else None
    if not isinstance(value, (list, tuple)):
        raise BadInput("the column is neither text nor a list of messages", where=where)
    messages = []
    for turn in value:
        role, content = (
            (turn.get("role"), turn.get("content")) if isinstance(turn, dict) else ("", "")
        )
        if role not in CHAT_ROLES or not isinstance(content, str):
            raise BadInput("a message is not {role, content} of a chat", where=where)
        messages.append(Message(role, content))
    while messages and messages[-1].role != "assistant":
        messages.pop()
    return Text(tuple(messages)) if messages else None
