"""Two readers of JSON, written apart, judge every answer alike."""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harness.scoring.answers import score
from harness.validation.grammar import Malformed, read
from harness.validation.rescoring import judge
from harness.validation.solving import solve

NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
LEAVES = st.none() | st.booleans() | NUMBERS | st.text()
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.text(max_size=4), VALUES, max_size=4)
PARTS = st.sampled_from(
    [
        "{", "}", "[", "]", ":", ",", '"', "\\", "\\u", "d83d", "\\ude00", "\\ud83d", "a", "e", "E",
        "+", "-", "0", "01", "1", ".5", "1.0", "1e400", "-0", "true", "null", "NaN", "Infinity",
        " ", "\n", "\t", "\x00", "\u00a0", "\ufeff", "é", "٣", "/", "\\n", "\\/", "{}", '{"a":1}',
        "```", "\x1b[2J", "</script>", "\ud800", '{"a":"', '"}', "1" * 1001, "[" * 70,
    ]
)  # fmt: skip


def both(text: str, expected: Any, limit: int = 32768) -> tuple[bool, bool]:
    judged = score(text, expected, limit)
    assert judge(text, expected, limit) == (judged.valid_json, judged.correct)
    return judged.valid_json, judged.correct


@given(OBJECTS, st.integers(0, 3) | st.none(), st.booleans())
def test_written_objects_are_read_alike(value: Any, indent: int | None, escape: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=escape)
    assert both(text, value) == (True, True)
    both(text, {"other": value})


@given(st.lists(PARTS, max_size=14).map("".join), OBJECTS)
@example('{"a":1}', {"a": 1})
@example('{"a":1.0}', {"a": 1})
@example('{"a":true}', {"a": 1})
@example('{"a":1,"a":1}', {"a": 1})
@example('{"a":"\\ud83d\\ude00"}', {"a": "😀"})
@example('{"a":"\\ud83d"}', {"a": "x"})
@example('{"a":"\\ud83d\\u0041"}', {"a": "x"})
@example('{"a":-0.0}', {"a": 0.0})
@example('{"a":1e0}', {"a": 1.0})
@example('{"a":1e999}', {"a": 1.0})
@example('\ufeff{"a":1}', {"a": 1})
@example('```json\n{"a":1}\n```', {"a": 1})
@example(' \t\r\n{"a":1} \n', {"a": 1})
@example('\x0b{"a":1}', {"a": 1})
@example('{"a":1}{', {"a": 1})
@example('{"a":٣}', {"a": 3})
@example("", {})
def test_any_text_is_judged_alike(text: str, expected: Any) -> None:
    both(text, expected)


@pytest.mark.parametrize("depth", [62, 63, 64, 65, 500, 30_000])
def test_depth_is_judged_alike(depth: int) -> None:
    both('{"a":' + "[" * depth + "]" * depth + "}", {"a": 1})


@pytest.mark.parametrize("digits", [999, 1000, 1001, 20_000])
def test_long_numbers_are_judged_alike(digits: int) -> None:
    both('{"a":' + "1" * digits + "}", {"a": 1})
    both('{"a":0.' + "1" * digits + "}", {"a": 1})


@pytest.mark.parametrize("limit", [6, 7, 8, 9, 10])
def test_size_is_judged_alike(limit: int) -> None:
    both('{"a":1}', {"a": 1}, limit)
    both('{"é":1}', {"é": 1}, limit)


@given(VALUES)
def test_the_reader_reads_what_json_writes(value: Any) -> None:
    def bare(read_value: tuple[str, Any]) -> Any:
        kind, inner = read_value
        if kind == "object":
            return {key: bare(member) for key, member in inner.items()}
        return [bare(one) for one in inner] if kind == "array" else inner

    assert bare(read(json.dumps(value))) == value


@pytest.mark.parametrize(
    "text", ["{", "[1,]", '{"a":1,}', "{a:1}", "'a'", "01", "1.", ".5", "+1", "tru", '"\t"', "1 2"]
)
def test_what_is_not_json_is_malformed(text: str) -> None:
    with pytest.raises(Malformed):
        read(text)


TABLE = "id city units price status priority\nK417 Oslo 12 7 ready 3\nB002 Lima 1 9 closed 3"


def test_answers_are_solved_from_text_alone() -> None:
    assert solve("lookup", f"{TABLE}\nWhat of K417?") == {"city": "Oslo", "units": 12}
    assert solve("lookup", f"What of Z000?\n{TABLE}") == {"city": None, "units": None}
    assert solve("filter", f"{TABLE}\nList what is closed.") == {"ids": ["B002"]}
    assert solve("total", f"{TABLE}\nSum up.") == {"total": 93}
    assert solve("sort", f"{TABLE}\nRank.") == {"ids": ["B002", "K417"]}
    assert solve("lookup", f"{TABLE}\nWhat of it?") is None
    assert solve("filter", f"{TABLE}\nready or closed?") is None
    assert solve("poem", TABLE) is None
