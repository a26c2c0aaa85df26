"""Strict scoring: what earns credit and what never does."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness.scoring.answers import MAX_ANSWER_BYTES, MAX_DEPTH, Reason, Score, score

RIGHT = Score(correct=True, valid_json=True, reason="correct")
WRONG = Score(correct=False, valid_json=True, reason="wrong-value")


def refused(reason: Reason) -> Score:
    return Score(correct=False, valid_json=False, reason=reason)


class TestCredit:
    def test_the_expected_object(self) -> None:
        assert score('{"units":7}', {"units": 7}) == RIGHT

    def test_bytes_as_well_as_text(self) -> None:
        assert score('{"city":"Åre"}'.encode(), {"city": "Åre"}) == RIGHT

    def test_key_order_is_free_at_every_depth(self) -> None:
        answer = '{"b":{"y":2,"x":1},"a":[{"q":null,"p":true}]}'
        assert score(answer, {"a": [{"p": True, "q": None}], "b": {"x": 1, "y": 2}}) == RIGHT

    @pytest.mark.parametrize("around", [" ", "\n", "\r\n", "\t", "\n\n  "])
    def test_white_space_around_is_allowed(self, around: str) -> None:
        assert score(f'{around}{{ "a" :\n1 }}{around}', {"a": 1}) == RIGHT

    def test_escapes_are_read(self) -> None:
        assert score(r'{"\u0061":"\ud83d\ude00\n"}', {"a": "😀\n"}) == RIGHT

    def test_null_where_the_record_is_absent(self) -> None:
        assert score('{"record":null}', {"record": None}) == RIGHT

    def test_the_empty_object_where_it_is_expected(self) -> None:
        assert score("{}", {}) == RIGHT

    def test_a_double_in_any_notation(self) -> None:
        assert score('{"a":1e0}', {"a": 1.0}) == RIGHT


class TestWrongValues:
    @pytest.mark.parametrize("written", ["1.0", "1e0", "true", '"1"', "[1]", "null", "2", "{}"])
    def test_one_is_only_the_integer_one(self, written: str) -> None:
        assert score(f'{{"a":{written}}}', {"a": 1}) == WRONG

    @pytest.mark.parametrize("written", ["1", "0", '"true"', "false", "1.0"])
    def test_true_is_only_true(self, written: str) -> None:
        assert score(f'{{"a":{written}}}', {"a": True}) == WRONG

    @pytest.mark.parametrize("written", ["1", "true", '"1.0"'])
    def test_a_double_is_not_an_integer(self, written: str) -> None:
        assert score(f'{{"a":{written}}}', {"a": 1.0}) == WRONG

    def test_types_are_strict_inside_lists(self) -> None:
        assert score('{"a":[[0]]}', {"a": [[False]]}) == WRONG

    @pytest.mark.parametrize("written", ["[2,1]", "[1]", "[1,2,2]", "[1,2,null]", "[]"])
    def test_lists_are_ordered_and_whole(self, written: str) -> None:
        assert score(f'{{"a":{written}}}', {"a": [1, 2]}) == WRONG

    @pytest.mark.parametrize("written", ["{}", '{"a":1,"b":2}', '{"A":1}', '{"a ":1}'])
    def test_keys_are_exact(self, written: str) -> None:
        assert score(written, {"a": 1}) == WRONG

    def test_null_where_a_record_is_expected(self) -> None:
        assert score('{"record":null}', {"record": {"id": "A001"}}) == WRONG

    def test_a_missing_key_is_not_null(self) -> None:
        assert score("{}", {"record": None}) == WRONG

    def test_unicode_is_not_normalised(self) -> None:
        assert score('{"a":"e\u0301"}', {"a": "\u00e9"}) == WRONG

    def test_strings_keep_their_white_space_and_case(self) -> None:
        assert score('{"a":"Oslo "}', {"a": "Oslo"}) == WRONG
        assert score('{"a":"oslo"}', {"a": "Oslo"}) == WRONG


NOT_JSON = [
    "",
    " \n",
    "{",
    '{"a":1',
    '{"a":1}}',
    '{"a":1} done',
    '{"a":1}{"a":1}',
    'The answer is {"a":1}',
    '```json\n{"a":1}\n```',
    '```\n{"a":1}\n```',
    "{'a':1}",
    "{a:1}",
    '{"a":1,}',
    '{"a":01}',
    '{"a":+1}',
    '{"a":1.}',
    '{"a":.5}',
    '{"a":0x1}',
    '{"a":1_0}',
    '{"a":True}',
    '{"a":nan}',
    '{"a":\uff11}',
    '{"a":1} // one',
    '{"a":"\n"}',
    '{"a":"\x00"}',
    '{"a":"\\x41"}',
    '{"a":"\\u00g1"}',
    '\ufeff{"a":1}',
    '\u00a0{"a":1}',
    '\x0b{"a":1}\x0c',
    '{"a":1}\x00',
]


class TestNoCredit:
    @pytest.mark.parametrize("answer", NOT_JSON)
    def test_what_is_not_json(self, answer: str) -> None:
        assert score(answer, {"a": 1}) == refused("not-json")
        assert score(answer.encode(), {"a": 1}) == refused("not-json")

    @pytest.mark.parametrize("answer", ["1", "null", "true", '"a"', "[]", '[{"a":1}]', "1.5"])
    def test_json_that_is_not_an_object(self, answer: str) -> None:
        assert score(answer, {"a": 1}) == refused("not-object")

    @pytest.mark.parametrize(
        "answer",
        [
            '{"a":1,"a":1}',
            '{"a":2,"a":1}',
            '{"a":1,"\\u0061":1}',
            '{"a":[{"b":1,"c":2,"b":1}]}',
        ],
    )
    def test_duplicate_keys_anywhere(self, answer: str) -> None:
        assert score(answer, {"a": 1}) == refused("duplicate-key")

    @pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e400", "-1e400", "9e999"])
    def test_numbers_that_are_not_finite(self, number: str) -> None:
        assert score(f'{{"a":{number}}}', {"a": 1}) == refused("non-finite")
        assert score(f'{{"a":[[{number}]]}}', {"a": 1}) == refused("non-finite")

    @pytest.mark.parametrize("number", ["1" + "0" * 5000, "-" + "9" * 4301, "0." + "0" * 5000])
    def test_numbers_that_are_too_long(self, number: str) -> None:
        assert score(f'{{"a":{number}}}', {"a": 1}) == refused("number-too-long")

    def test_a_long_integer_does_not_round_to_the_expected_one(self) -> None:
        assert score(f'{{"a":{2**64 + 1}}}', {"a": 2**64}) == WRONG

    @pytest.mark.parametrize("answer", [b'{"a":"\xff"}', b"\xc0\x80", b'{"a":"\xed\xa0\x80"}'])
    def test_bytes_that_are_not_utf8(self, answer: bytes) -> None:
        assert score(answer, {"a": 1}) == refused("invalid-unicode")

    @pytest.mark.parametrize(
        "answer",
        [
            '{"a":"\ud800"}',
            r'{"a":"\ud800"}',
            r'{"a":["\udc00\ud800"]}',
            r'{"\ud800":1}',
            r'{"b":{"\udfff":1}}',
            r'"\ud800"',
        ],
    )
    def test_lone_surrogates(self, answer: str) -> None:
        assert score(answer, {"a": 1}) == refused("invalid-unicode")


class TestSize:
    def test_exactly_the_limit_is_read(self) -> None:
        answer = '{"a":1}'
        padded = answer + " " * (MAX_ANSWER_BYTES - len(answer))
        assert score(padded, {"a": 1}) == RIGHT
        assert score(padded + " ", {"a": 1}) == refused("too-long")
        assert score(padded.encode(), {"a": 1}) == RIGHT
        assert score(padded.encode() + b" ", {"a": 1}) == refused("too-long")

    def test_the_limit_counts_bytes_and_not_characters(self) -> None:
        text = "é" * 16380
        assert score(f'{{"a":"{text}"}}', {"a": text}) == RIGHT
        assert score(f'{{"a":"{text}éééé"}}', {"a": text}) == refused("too-long")

    def test_the_limit_can_be_declared(self) -> None:
        assert score('{"a":1}', {"a": 1}, max_bytes=7) == RIGHT
        assert score('{"a":1}', {"a": 1}, max_bytes=6) == refused("too-long")

    def test_megabytes_are_refused(self) -> None:
        assert score("[" * 10_000_000, {"a": 1}) == refused("too-long")


def nested(depth: int, opening: str = '{"a":', closing: str = "}") -> str:
    return opening * (depth - 1) + "{}" + closing * (depth - 1)


class TestDepth:
    def test_exactly_the_cap_is_read(self) -> None:
        expected: Any = {}
        for _ in range(MAX_DEPTH - 1):
            expected = {"a": expected}
        assert score(nested(MAX_DEPTH), expected) == RIGHT

    def test_one_deeper_is_refused(self) -> None:
        assert score(nested(MAX_DEPTH + 1), {"a": 1}) == refused("too-deep")
        assert score(nested(MAX_DEPTH + 1, "[", "]"), {"a": 1}) == refused("too-deep")

    @pytest.mark.parametrize("character", ["[", "{", '{"a":', "[{}]["])
    def test_as_deep_as_the_limit_allows(self, character: str) -> None:
        answer = character * (MAX_ANSWER_BYTES // len(character))
        assert score(answer, {"a": 1}).valid_json is False

    def test_brackets_inside_strings_are_text(self) -> None:
        text = '[{"\\' * 200
        assert score(json.dumps({"a": text}), {"a": text}) == RIGHT

    def test_many_values_side_by_side_are_not_deep(self) -> None:
        assert score(json.dumps({"a": [[]] * 5000}), {"a": [[]] * 5000}) == RIGHT


class TestExpected:
    @pytest.mark.parametrize(
        "expected",
        [
            None,
            [1],
            "a",
            1,
            {"a": float("nan")},
            {"a": [float("inf")]},
            {"a": (1, 2)},
            {"a": {1: 2}},
            {"a": "\ud800"},
            {"a": b"x"},
            {"a": 10**5000},
        ],
    )
    def test_what_no_answer_can_equal_is_refused_and_not_scored(self, expected: Any) -> None:
        with pytest.raises(ValueError, match="the expected value") as caught:
            score("{}", expected)
        assert "\n" not in str(caught.value)

    def test_too_deep_an_expected_value_is_refused(self) -> None:
        expected: Any = {}
        for _ in range(MAX_DEPTH):
            expected = {"a": expected}
        with pytest.raises(ValueError, match="nested deeper"):
            score("{}", expected)
