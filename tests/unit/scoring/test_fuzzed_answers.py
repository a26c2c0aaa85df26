"""10,000 answers that no model should give: no error, and three readers agree on every one."""

from __future__ import annotations

import json
import random

from rich.cells import cell_len

from harness import standalone
from harness.display.sanitize import UNSEEN, clean
from harness.report.page import hostile
from harness.scoring.answers import JsonValue, score
from harness.validation.rescoring import judge

ANSWERS = 10_000
EXPECTED: JsonValue = {"ids": ["A001", "B002"], "units": 7, "city": None, "share": 0.5, "ok": True}
RIGHT = json.dumps(EXPECTED)
PIECES = (
    '"', "\\", "{", "}", "[", "]", ":", ",", "null", "true", "NaN", "-Infinity", "1e400", "-0",
    "0.5", "7.0", "07", "1" * 1001, "\\ud800", "\\u0000", "\ud800", "\x00", "\x1b[2J", "\u202e",
    "\ufeff", "\u0667", "\u00a0", "\x0b", "```json\n", "</script>", '"units":7,', "{" * 70,
    "[" * 5000, '"' + "x" * 40_000, "\n", " ", "\t", "é", "\U0001f600", "/*", "'",
)  # fmt: skip


def fuzzed(drawn: random.Random) -> str:
    """The right answer, or a random one, with a few things put in, cut out or swapped."""
    text = RIGHT if drawn.random() < 0.7 else "".join(drawn.choices(PIECES, k=5))
    for _ in range(drawn.randrange(4)):
        at, way = drawn.randrange(len(text) + 1), drawn.randrange(4)
        if way == 0:
            text = text[:at] + drawn.choice(PIECES) + text[at:]
        elif way == 1:
            text = text[:at] + text[at + drawn.randrange(1, 4) :]
        elif way == 2:
            text = text[:at] + chr(drawn.randrange(0x250)) + text[at + 1 :]
        else:
            text = text[at:] + text[:at]
    return text


def test_fuzzed_answers_give_no_error_and_one_judgement() -> None:
    drawn, outcomes = random.Random(5), set()
    for number in range(ANSWERS):
        text = fuzzed(drawn)
        if number < len(PIECES):
            text = RIGHT.replace('"units": 7', f'"units": {PIECES[number]}')
        found = score(text, EXPECTED)
        outcomes.add(found.reason)
        judged = (found.valid_json, found.correct)
        assert judge(text, EXPECTED, 32768) == judged, text[:200]
        assert standalone.judge(text, EXPECTED, 32768) == judged, text[:200]
        short = text[:2000]
        assert not UNSEEN.search(str(hostile(short)))
        assert "\x1b" not in clean(short)
        assert cell_len(clean(short)) >= 0
    assert {"correct", "wrong-value", "not-json", "not-object", "duplicate-key", "non-finite",
            "number-too-long", "invalid-unicode", "too-long", "too-deep"} == outcomes  # fmt: skip
