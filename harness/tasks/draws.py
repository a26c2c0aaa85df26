"""Random draws that never change: SHA-256 in counter mode, so no Python version matters."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TypeVar

from trainer import contract

T = TypeVar("T")
_WORD_BYTES = 8
_WORD = 1 << (8 * _WORD_BYTES)


class Draws:
    """A stream of integers that depends on its labels alone: `Draws(seed, "test", 17)`.

    Block `n` of the stream is SHA-256(key + n as 8 big-endian bytes), the key is the SHA-256 of
    the labels' canonical JSON. Every draw takes whole 64-bit words and rejects the uneven rest.
    """

    def __init__(self, *labels: str | int) -> None:
        self._key = bytes.fromhex(contract.hash_of(list(labels)))
        self._block = 0
        self._words: list[int] = []

    def _word(self) -> int:
        if not self._words:
            block = hashlib.sha256(self._key + self._block.to_bytes(8, "big")).digest()
            self._block += 1
            self._words = [
                int.from_bytes(block[i : i + _WORD_BYTES], "big")
                for i in range(len(block) - _WORD_BYTES, -1, -_WORD_BYTES)
            ]
        return self._words.pop()

    def below(self, bound: int) -> int:
        """An integer from 0 to bound - 1, each equally likely."""
        if not 0 < bound <= _WORD:
            raise ValueError(f"a draw below {bound} is not possible")
        limit = _WORD - _WORD % bound
        while (word := self._word()) >= limit:
            pass
        return word % bound

    def within(self, low: int, high: int) -> int:
        """An integer from low to high, both included."""
        return low + self.below(high - low + 1)

    def chance(self, one_in: int) -> bool:
        """True once in `one_in` times on average."""
        return self.below(one_in) == 0

    def choose(self, items: Sequence[T]) -> T:
        """One of the items."""
        return items[self.below(len(items))]

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """A new list of the items in random order (Fisher and Yates)."""
        order = list(items)
        for last in range(len(order) - 1, 0, -1):
            other = self.below(last + 1)
            order[last], order[other] = order[other], order[last]
        return order

    def sample(self, items: Sequence[T], count: int) -> list[T]:
        """`count` different items in random order."""
        return self.shuffled(items)[:count]
