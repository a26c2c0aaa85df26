"""Whole conversations as one string, and a tokenizer that reads such strings and ids back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from tokenizers import Tokenizer

ANSWER_OPENS = "<|im_start|>assistant\n"
ANSWER_CLOSES = "<|im_end|>"


def reader(tokenizer_json: Path) -> Tokenizer:
    """The tokenizer as its file says, but for padding and cutting."""
    found = Tokenizer.from_str(tokenizer_json.read_text(encoding="utf-8"))
    found.no_truncation()
    found.no_padding()
    return found


def rendered(messages: Iterable[Mapping[str, str]], system: str | None) -> str:
    """A conversation in ChatML, up to and with its last end token."""
    turns = [(turn["role"], turn["content"]) for turn in messages]
    if system is not None and turns[0][0] != "system":
        turns.insert(0, ("system", system))
    return "\n".join(f"<|im_start|>{who}\n{what}{ANSWER_CLOSES}" for who, what in turns)


def spoken(tokenizer: Tokenizer, ids: list[int]) -> str:
    """The text that token ids stand for, control tokens spelled out."""
    text: str = tokenizer.decode(ids, skip_special_tokens=False)
    return text
