"""Strict scoring of arbitrary text and bytes: nothing raises, and credit survives a slow check."""

from __future__ import annotations

import json
from typing import Any, get_args

from hypothesis import example, given, settings
from hypothesis import strategies as st

from harness.scoring.answers import Reason, Score, score

settings.register_profile("no-deadline", deadline=None)  # a busy machine is not a fault
settings.load_profile("no-deadline")

RIGHT = Score(correct=True, valid_json=True, reason="correct")
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=6)
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(alphabet='abé"\\{', max_size=3), inner, max_size=4)
    ),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.text(alphabet="ab", max_size=2), VALUES, max_size=4)
JSON_LIKE = st.text(alphabet='{}[]":,\\ue0123.-+ntfaINy \n\ud800é', max_size=40)


def tagged(value: Any) -> str:
    """A value spelled out with its types: equal texts, strictly equal values. Slow, and its own."""
    if isinstance(value, dict):
        inner = ";".join(f"{key.encode().hex()}={tagged(value[key])}" for key in sorted(value))
        return f"object({inner})"
    if isinstance(value, list):
        return f"list({';'.join(tagged(item) for item in value)})"
    if isinstance(value, str):
        return f"str({value.encode().hex()})"
    if isinstance(value, float):
        return f"float({value + 0.0!r})"  # adding 0.0 turns -0.0, which equals 0.0, into it
    return f"{type(value).__name__}({value!r})"


def slow_check(answer: str | bytes, expected: Any) -> bool:
    """Whether an answer may earn credit, by the plain standard-library parser."""
    text = answer.decode() if isinstance(answer, bytes) else answer
    parsed = json.loads(text)
    return isinstance(parsed, dict) and tagged(parsed) == tagged(expected)


class TestAnyAnswer:
    @settings(max_examples=400)
    @given(st.text() | st.binary() | JSON_LIKE, OBJECTS)
    @example("{}", {})
    def test_never_raises_and_credit_survives_the_slow_check(
        self, answer: str | bytes, expected: Any
    ) -> None:
        result = score(answer, expected)
        assert result.reason in get_args(Reason)
        assert result.valid_json == (result.reason in ("correct", "wrong-value"))
        assert result.correct == (result.reason == "correct")
        if result.correct:
            assert slow_check(answer, expected)

    @settings(max_examples=300)
    @given(OBJECTS, OBJECTS)
    def test_correct_exactly_when_the_slow_check_agrees(self, written: Any, expected: Any) -> None:
        for answer in (json.dumps(written), json.dumps(written, ensure_ascii=False, indent=1)):
            assert score(answer, expected).correct == slow_check(answer, expected)
            assert score(answer.encode(), written) == RIGHT

    @given(OBJECTS, st.data())
    def test_one_changed_character_earns_credit_only_if_strictly_equal(
        self, expected: Any, data: st.DataObject
    ) -> None:
        answer = json.dumps(expected)
        position = data.draw(st.integers(0, len(answer) - 1))
        character = data.draw(st.characters())
        changed = answer[:position] + character + answer[position + 1 :]
        if score(changed, expected).correct:
            assert slow_check(changed, expected)

    @given(OBJECTS, st.text(min_size=1))
    def test_text_around_an_answer_costs_the_credit(self, expected: Any, text: str) -> None:
        if not text.strip(" \t\r\n"):
            return
        answer = json.dumps(expected)
        assert not score(answer + text, expected).correct
        assert not score(text + answer, expected).correct
