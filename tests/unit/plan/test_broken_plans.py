"""Broken plans, no two with the same kind of fault: place, one sentence, exit code 2."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.errors import BadInput
from harness.plan import load_plan

QUICKSTART = (Path(__file__).parents[3] / "plans" / "quickstart" / "plan.json").read_bytes()
Change = Callable[[Any], None]


def put(pointer: str, new: object) -> Change:
    """Set the value at a JSON pointer."""

    def change(value: Any) -> None:
        *path, last = pointer.strip("/").split("/")
        for step in path:
            value = value[int(step)] if isinstance(value, list) else value[step]
        value[int(last) if isinstance(value, list) else last] = new

    return change


def drop(pointer: str) -> Change:
    """Remove the member at a JSON pointer."""

    def change(value: Any) -> None:
        *path, last = pointer.strip("/").split("/")
        for step in path:
            value = value[int(step)] if isinstance(value, list) else value[step]
        del value[last]

    return change


def serving(**fields: object) -> dict[str, object]:
    """A serving section that fits the quickstart, with fields changed."""
    return {
        "candidate": "pair",
        "requests": 8,
        "concurrency": 2,
        "attempts": 2,
        "timeout_s": 60,
        "warmup_requests": 1,
        "max_new_tokens": 8,
        "phases": [{"name": "one", "replicas": 1, "fault": "none"}],
        **fields,
    }


# (what is broken, how, the pointer of the error, words of its sentence)
FIELDS: list[tuple[str, Change, str, str]] = [
    ("unknown field", put("/budget/celing_usd", "0"), "/budget/celing_usd", "'celing_usd' is not"),
    ("missing field", drop("/recipe/updates"), "/recipe/updates", "'updates' is missing"),
    ("wrong type", put("/recipe/updates", "16"), "/recipe/updates", 'integer, not "16"'),
    ("fraction for a count", put("/recipe/updates", 1.5), "/recipe/updates", "integer, not 1.5"),
    ("truth for a count", put("/recipe/updates", True), "/recipe/updates", "integer, not true"),
    ("negative", put("/arms/1/exchange/rank", -1), "/arms/1/exchange/rank", "equal to 1, not -1"),
    ("zero rate", put("/recipe/optimizer/lr", 0), "/recipe/optimizer/lr", "greater than 0"),
    ("share above one", put("/recipe/schedule/floor", 1.5), "/recipe/schedule/floor", "equal to 1"),
    ("bad tag", put("/arms/1/exchange/kind", "ring"), "/arms/1/exchange", "'none', 'dense'"),
    ("no tag", put("/data/replay", {}), "/data/replay", "'kind'"),
    ("bad word", put("/arms/0/preserve", "all"), "/arms/0/preserve", "'weights' or 'full-state'"),
    ("other schema", put("/schema", "harness/plan/2"), "/schema", "'harness/plan/1'"),
    ("name pattern", put("/name", "My Study"), "/name", "lower-case words"),
    ("empty text", put("/question", ""), "/question", "at least 1 character"),
    ("null", put("/chat", None), "/chat", "not null"),
    ("list for an object", put("/hosts", []), "/hosts", "object, not []"),
    ("no arms", put("/arms", []), "/arms", "at least 1 item"),
    ("arm name twice", put("/arms/1/name", "single"), "/arms/1/name", "must differ"),
    ("arm named reference", put("/arms/0/name", "reference"), "/arms/0/name", "'reference'"),
    ("pair without exchange", put("/arms/1/exchange", {"kind": "none"}), "/arms/1/exchange",
     "2 worker(s) cannot have the exchange 'none'"),
    ("one worker with exchange", put("/arms/0/exchange", {"kind": "dense"}), "/arms/0/exchange",
     "1 worker(s) cannot have the exchange 'dense'"),
    ("batch over workers", put("/recipe/global_batch", 9), "/arms/1/workers", "does not divide"),
    ("more workers than hosts", put("/hosts/local/count", 1), "/hosts/local/count", "2 workers"),
    ("damaged without rule", put("/arms/0/corpus", "damaged"), "/arms/0/corpus", "data.damage"),
    ("remainder", put("/data/damage", {"rule": "sha256-mod", "modulus": 4, "remainder": 4}),
     "/data/damage/remainder", "not below the modulus"),
    ("replay without source", drop("/data/replay"), "/data/replay", "no replay source"),
    ("family twice", put("/data/tasks/families", ["lookup", "lookup"]), "/data/tasks/families",
     "something twice"),
    ("wording out of range", put("/data/tasks/test_wordings", [4]), "/data/tasks/test_wordings/0",
     "less than or equal to 3"),
    ("probe sets of one name", put("/data/retention/1/name", "passages"), "/data/retention",
     "same name"),
    ("short hash", put("/model/sha256", "b179"), "/model/sha256", "64 lower-case hex"),
    ("revision is a branch",
     put("/tokenizer", {"kind": "hub", "repo": "a/b", "revision": "main"}), "/tokenizer/revision",
     "a branch or tag can move"),
    ("money as a number", put("/budget/ceiling_usd", 100), "/budget/ceiling_usd",
     "string, not 100"),
    ("money with an exponent", put("/budget/ceiling_usd", "1e2"), "/budget/ceiling_usd",
     "plain decimal in a string"),
    ("unknown arm in a decision", put("/decisions/0/candidate", "trio"), "/decisions/0/candidate",
     "names 'trio', which is unknown"),
    ("decision name twice", put("/decisions/1/name", "pair-gains"), "/decisions/1/name",
     "two decisions"),
    ("no reference", drop("/decisions/0/reference"), "/decisions/0/reference", "needs a reference"),
    ("against itself", put("/decisions/2/reference", "pair"), "/decisions/2/reference",
     "with itself"),
    ("no z", drop("/decisions/0/z"), "/decisions/0/z", "needs z"),
    ("bound that the statistic has not", put("/decisions/4/bound", "lower"), "/decisions/4/bound",
     "takes at-least or at-most"),
    ("no timer", drop("/decisions/7/timer"), "/decisions/7/timer", "needs a timer"),
    ("no probes", drop("/decisions/3/probes"), "/decisions/3/probes", "needs probes"),
    ("unknown probes", put("/decisions/3/probes", "poems"), "/decisions/3/probes",
     "unknown probes"),
    ("served arm unknown", put("/serving", serving(candidate="trio")), "/serving/candidate",
     "'trio', which is unknown"),
    ("more requests than cases", put("/serving", serving(requests=17)), "/serving/requests",
     "more requests than"),
    ("phase name twice",
     put("/serving", serving(phases=2 * [{"name": "a", "replicas": 1, "fault": "none"}])),
     "/serving/phases", "two serving phases"),
    ("text for a float", put("/decisions/0/margin", "0"), "/decisions/0/margin", "number, not"),
]  # fmt: skip


def written(value: object) -> bytes:
    return json.dumps(value).encode()


BODY = QUICKSTART.decode()
# (what is broken, the file's bytes, words of its sentence)
FILES: list[tuple[str, bytes, str]] = [
    ("duplicate key", BODY.replace('"seed":', '"name": "a", "seed":').encode(), '"name" appears'),
    ("NaN", BODY.replace('"lr": 0.0002', '"lr": NaN').encode(), "NaN is not a JSON number"),
    ("infinite float", BODY.replace('"lr": 0.0002', '"lr": 1e999').encode(), "out of range"),
    ("trailing text", QUICKSTART + b"}", "Extra data at line"),
    ("trailing comma", BODY.replace('"attempts": 10', '"attempts": 10,').encode(), "is not JSON"),
    ("cut short", QUICKSTART[:-40], "is not JSON"),
    ("empty file", b"", "is not JSON"),
    ("not UTF-8", QUICKSTART.replace(b"quickstart-1", b"quick\xff"), "not UTF-8 at byte"),
    ("UTF-16", BODY.encode("utf-16"), "not UTF-8 at byte 0"),
    ("lone surrogate", BODY.replace("quickstart-1", "\\ud800").encode(), "lone surrogate"),
    ("nested too deep", b"[" * 100 + b"]" * 100, "nested deeper than 64"),
    ("nested until the stack ends", b"[" * 200_000 + b"]" * 200_000, "nested too deeply"),
    ("a list", b"[]", "object, not []"),
    ("huge integer", BODY.replace('"seed": "quickstart-1"', f'"seed": 1{"0" * 5000}').encode(), ""),
    ("integer past 2^53",
     BODY.replace('"deadline_s": 5400', '"deadline_s": 9007199254740993').encode(),
     "9007199254740"),
    ("too large a file", QUICKSTART + b" " * 1024 * 1024, "larger than 1048576 bytes"),
]  # fmt: skip


def fault(path: Path) -> BadInput:
    with pytest.raises(BadInput) as caught:
        load_plan(path)
    return caught.value


def assert_one_sentence(error: BadInput) -> None:
    said = str(error)
    assert error.exit_code == 2
    assert said.endswith(".") and not said.endswith("..")
    assert "\n" not in said and len(said) < 400
    assert not re.search(r"Traceback|Error\b|pydantic|File \"", said)


@pytest.mark.parametrize(("name", "change", "pointer", "words"), FIELDS, ids=[f[0] for f in FIELDS])
def test_a_broken_field(
    tmp_path: Path, name: str, change: Change, pointer: str, words: str
) -> None:
    value = json.loads(QUICKSTART)
    change(value)
    path = tmp_path / "plan.json"
    path.write_bytes(written(value))
    error = fault(path)
    assert error.where == f"{path}#{pointer}"
    assert words in error.what
    assert error.next_command == f"harness check {path}"
    assert_one_sentence(error)


@pytest.mark.parametrize(("name", "data", "words"), FILES, ids=[f[0] for f in FILES])
def test_a_broken_file(tmp_path: Path, name: str, data: bytes, words: str) -> None:
    path = tmp_path / "plan.json"
    path.write_bytes(data)
    error = fault(path)
    assert error.where.startswith(str(path))
    assert words in error.what
    assert_one_sentence(error)


class TestFilesThatAreNotThere:
    def test_a_missing_file_names_the_command_that_makes_one(self, tmp_path: Path) -> None:
        error = fault(tmp_path / "none.json")
        assert "No such file" in error.what and error.next_command == "harness init my-study"
        assert_one_sentence(error)

    def test_a_folder_without_a_plan(self, tmp_path: Path) -> None:
        error = fault(tmp_path)
        assert error.where == str(tmp_path / "plan.json")
        assert_one_sentence(error)

    def test_a_folder_in_the_place_of_the_plan(self, tmp_path: Path) -> None:
        (tmp_path / "plan.json").mkdir()
        error = fault(tmp_path)
        assert error.where.startswith(str(tmp_path))
        assert_one_sentence(error)

    def test_a_path_through_a_file(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("x")
        error = fault(tmp_path / "file" / "plan.json")
        assert "Not a directory" in error.what
        assert_one_sentence(error)


def test_every_kind_of_fault_is_here_once() -> None:
    names = [each[0] for each in FIELDS] + [each[0] for each in FILES]
    assert len(names) == len(set(names)) >= 20


def test_a_folder_with_a_plan_is_that_plan(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_bytes(QUICKSTART)
    loaded = load_plan(tmp_path)
    assert loaded.path == tmp_path / "plan.json" and loaded.folder == tmp_path
