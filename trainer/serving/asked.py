"""A request's form: strict JSON, known fields, limits. Standard library only."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainer.contract import ContractError, hash_of, parse

IDENTITY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class Refusal(Exception):
    """A request that is not answered: an HTTP status and one sentence."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence


@dataclass(frozen=True)
class Limits:
    """What one request may ask for."""

    body_bytes: int
    max_new_tokens: int
    context: int
    """Prompt and answer together, in tokens."""
    vocabulary: int
    """Token ids are below this."""


@dataclass(frozen=True)
class Asked:
    """A request that may be answered."""

    request: str
    tokens: tuple[int, ...]
    max_new_tokens: int

    @property
    def digest(self) -> str:
        """Two requests of one identity must have the same."""
        return hash_of([list(self.tokens), self.max_new_tokens])


def identity_of(value: str | None) -> str:
    """The header X-Request-Id. Raises Refusal."""
    if value is None:
        raise Refusal(400, "the header X-Request-Id is missing: every request has an identity")
    if not IDENTITY.fullmatch(value):
        raise Refusal(400, "X-Request-Id is not 1 to 100 letters, digits, '.', '_' and '-'")
    return value


def read_body(data: bytes, request: str, limits: Limits) -> Asked:
    """The body {"tokens": [...], "max_new_tokens": n}. Raises Refusal."""
    try:
        body = parse(data, where="the body")
    except ContractError as error:
        raise Refusal(400, str(error)) from None
    if not isinstance(body, dict) or set(body) != {"tokens", "max_new_tokens"}:
        raise Refusal(400, "the body is not an object of 'tokens' and 'max_new_tokens'")
    tokens, most = body["tokens"], body["max_new_tokens"]
    if not isinstance(tokens, list) or not tokens:
        raise Refusal(400, "'tokens' is not a list of token ids, or is empty")
    if not all(type(each) is int and 0 <= each < limits.vocabulary for each in tokens):
        raise Refusal(400, f"'tokens' holds what is no token id from 0 to {limits.vocabulary - 1}")
    if type(most) is not int or most < 1:
        raise Refusal(400, "'max_new_tokens' is not an integer of at least 1")
    if most > limits.max_new_tokens:
        raise Refusal(422, f"'max_new_tokens' is {most}, and at most {limits.max_new_tokens} are")
    if len(tokens) + most > limits.context:
        raise Refusal(
            422,
            f"{len(tokens)} prompt and {most} new tokens do not fit a context of {limits.context}",
        )
    return Asked(request, tuple(tokens), most)


class Kept:
    """The declared cache: answers by request identity, so that a retry is not executed again."""

    def __init__(self, most: int = 1024) -> None:
        self._answers: OrderedDict[str, tuple[str, Mapping[str, Any]]] = OrderedDict()
        self._most = most

    def find(self, asked: Asked) -> Mapping[str, Any] | None:
        """The kept answer. Raises Refusal when the identity was another request's."""
        found = self._answers.get(asked.request)
        if found is None:
            return None
        if found[0] != asked.digest:
            raise Refusal(409, "another request had this identity")
        return found[1]

    def keep(self, asked: Asked, answer: Mapping[str, Any]) -> None:
        """Remember an answer; the oldest go first."""
        self._answers[asked.request] = (asked.digest, answer)
        while len(self._answers) > self._most:
            self._answers.popitem(last=False)
