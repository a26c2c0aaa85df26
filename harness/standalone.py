#!/usr/bin/env python3
"""Check the evidence of a study with Python 3.11 and nothing else: `python3 verify.py FOLDER`.

FOLDER holds evidence.tar.gz, closing.json and results.json. Written apart from the program that
made them, it checks again:

1. digests: SHA256SUMS where there is one, the archive against closing.json, every member against
   the archive's index;
2. order: the selection's commit leads back to the plan's, and both hold the archive's own files;
3. counts: every answer is scored again and counted by model, family, wording and form;
4. decisions: every declared inequality on accuracies, flips, valid JSON, retention losses, timers,
   bytes and parameters. What it does not work out itself (serving) it takes from results.json and
   says so.
"""

import gzip
import hashlib
import io
import json
import math
import sys
import tarfile
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from operator import ge, gt, le, lt
from pathlib import Path
from typing import Any, NoReturn

CLOSE = 1e-9
MOST_BYTES = 2 << 30

Members = dict[str, bytes]
Cases = dict[str, dict[str, Any]]
Found = tuple[float, float | None, float | None]
RULES = {"lower": gt, "upper": lt, "at-least": ge, "at-most": le}


class Wrong(Exception):
    """The first thing that differs."""


def need(fine: bool, sentence: str) -> None:
    """Stop with the sentence unless `fine`."""
    if not fine:
        raise Wrong(sentence)


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def check_sums(folder: Path) -> str:
    """SHA256SUMS names every file of the folder but a README.md and has its hash."""
    path = folder / "SHA256SUMS"
    if not path.exists():
        return "no SHA256SUMS: files outside the archive are checked by what they say only"
    lines = path.read_text("utf-8").splitlines()
    told = {line[66:]: line[:64] for line in lines}
    files = {p.relative_to(folder).as_posix(): p for p in folder.rglob("*") if p.is_file()}
    same = told.keys() <= files.keys() and files.keys() - told <= {"SHA256SUMS", "README.md"}
    need(len(told) == len(lines) and same, "SHA256SUMS names other files")
    for name, digest in told.items():
        with files[name].open("rb") as handle:
            found = hashlib.file_digest(handle, "sha256").hexdigest()
        need(found == digest, f"{name} differs from SHA256SUMS")
    return f"{len(told)} files are those of SHA256SUMS"


def read_archive(path: Path, expected: str) -> Members:
    """Members by name, after the tar's hash and the index's hashes are checked. In memory."""
    with gzip.open(path) as handle:
        data = handle.read(MOST_BYTES + 1)
    need(len(data) <= MOST_BYTES, "the archive is larger than 2 GiB")
    need(_sha256(data) == expected, f"the tar's SHA-256 is {_sha256(data)}, not {expected}")
    members = {}
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as tar:
        for member in tar:
            need(member.isreg() and member.name not in members, f"{member.name} is no plain file")
            content = tar.extractfile(member)
            members[member.name] = content.read() if content else b""
    index = parse(members.pop("index.json"))["members"]
    need([row["path"] for row in index] == list(members), "the index names other members")
    for row in index:
        need(
            _sha256(members[row["path"]]) == row["sha256"], f"{row['path']} differs from the index"
        )
    return members


def parse(data: str | bytes) -> Any:
    """A JSON value. Duplicate keys, NaN and infinities are errors."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        need(len(dict(pairs)) == len(pairs), "a duplicate key")
        return dict(pairs)

    def refuse(name: str) -> NoReturn:
        raise Wrong(f"the number {name[:20]}")

    def real(text: str) -> float:
        if len(text) > 1000 or not math.isfinite(float(text)):
            refuse(text)
        return float(text)

    def whole(text: str) -> int:
        return int(text) if len(text) <= 1000 else refuse(text)

    try:
        return json.loads(data, object_pairs_hook=unique, parse_constant=refuse, parse_float=real,
                          parse_int=whole)  # fmt: skip
    except (ValueError, RecursionError) as error:
        raise Wrong(f"not JSON: {str(error)[:60]}") from None


def rows(members: Members, name: str) -> list[Any]:
    """The values of a .jsonl member; none when it is absent."""
    return [parse(line) for line in members.get(name, b"").split(b"\n") if line]


def same_value(one: Any, two: Any) -> bool:
    """Equal as JSON: 1, 1.0 and true are three different values."""
    if type(one) is not type(two):
        return False
    if isinstance(one, dict):
        return one.keys() == two.keys() and all(same_value(one[k], two[k]) for k in one)
    if isinstance(one, list):
        return len(one) == len(two) and all(map(same_value, one, two))
    return bool(one == two)


def _git_object(members: Members, kind: str, name: str) -> bytes:
    need(f"{kind}s/{name}" in members, f"the git {kind} {name} is missing")
    data = members[f"{kind}s/{name}"]
    need(_git_name(kind, data, name) == name, f"{kind}s/{name} is not the object of that name")
    return data


def _git_name(kind: str, data: bytes, like: str) -> str:
    made = hashlib.sha1 if len(like) == 40 else hashlib.sha256
    return made(f"{kind} {len(data)}\0".encode() + data).hexdigest()


def _headers(members: Members, commit: str, word: bytes) -> list[str]:
    lines = _git_object(members, "commit", commit).split(b"\n\n")[0].split(b"\n")
    return [line.split(b" ")[1].decode() for line in lines if line.startswith(word + b" ")]


def check_order(members: Members) -> str:
    """Commits hold the archive's files; each leads back to the one before."""
    commits = parse(members["commits.json"])
    for row in commits:
        for member, path in row.get("paths", {}).items():
            name = _headers(members, row["commit"], b"tree")[0]
            for step in path.split("/"):
                name = _tree_entries(_git_object(members, "tree", name), len(name) // 2)[step]
            found = _git_name("blob", members[member], name)
            need(found == name, f"{member} differs from what the commit {row['commit']} holds")
    for earlier, later in pairwise(commits):
        waiting, seen = [later["commit"]], set()
        while waiting and earlier["commit"] not in seen:
            name = waiting.pop()
            seen.add(name)
            if name != earlier["commit"] and f"commits/{name}" in members:
                waiting += _headers(members, name, b"parent")
        need(earlier["commit"] in seen, f"{later['what']} does not follow {earlier['what']}")
    return f"{len(commits)} commitments in order, by their git objects"


def _tree_entries(tree: bytes, size: int) -> dict[str, str]:
    found = {}
    while tree:
        head, _, rest = tree.partition(b"\0")
        found[head.split(b" ", 1)[1].decode()] = rest[:size].hex()
        tree = rest[size:]
    return found


def judge(text: str, expected: Any, most_bytes: int) -> tuple[bool, bool]:
    """(one strict JSON object, equal to what was expected)."""
    depth = deepest = 0
    quoted = skip = False
    for character in text:
        if skip:
            skip = False
        elif quoted:
            skip, quoted = character == "\\", character != '"'
        elif character == '"':
            quoted = True
        else:
            depth += (character in "[{") - (character in "]}")
            deepest = max(deepest, depth)
    try:
        if deepest > 64 or len(text.encode()) > most_bytes:
            return False, False
        value = parse(text)
        json.dumps(value, ensure_ascii=False).encode()  # a lone surrogate cannot be UTF-8
    except (Wrong, UnicodeError, RecursionError):
        return False, False
    return isinstance(value, dict), isinstance(value, dict) and same_value(value, expected)


def score(members: Members, plan: Any, models: list[str]) -> dict[str, Cases]:
    """Test cases by model and id: {family, wording, correct, valid}."""
    most = plan["evaluation"].get("max_answer_bytes", 32768)
    asked = {row["id"]: row for row in rows(members, "inputs/test.answers.jsonl")}
    found: dict[str, Cases] = {}
    for model in models:
        told = [r for r in rows(members, f"models/{model}/scores.jsonl") if r["role"] == "test"]
        need([row["id"] for row in told] == list(asked), f"{model} answered other cases")
        found[model] = {}
        for row in told:
            case = asked[row["id"]]
            valid, correct = judge(row["text"], case["expected"], most)
            need(
                (valid, correct) == (row["valid_json"], row["correct"]),
                f"models/{model}/scores.jsonl: case {row['id'][:16]} is scored otherwise",
            )
            found[model][row["id"]] = {**case, "correct": correct, "valid": valid}
    return found


def _tally(cases: Cases, key: str = "id", value: str = "", what: str = "correct") -> Any:
    chosen = [case for case in cases.values() if not value or str(case[key]) == value]
    return {"correct": sum(case[what] for case in chosen), "cases": len(chosen)}


def check_counts(cases: dict[str, Cases], results: Any) -> str:
    """results.json has these counts and flips."""
    for model in results["models"]:
        mine, name = cases[model["name"]], model["name"]
        need(model["overall"] == _tally(mine), f"{name}: {_tally(mine)} correct")
        need(model["valid_json"] == _tally(mine, what="valid"), f"{name}: valid JSON")
        for kind, key in (("families", "family"), ("wordings", "wording")):
            for value, told in model[kind].items():
                found = _tally(mine, key, value)
                need(told == found, f"{name}, {key} {value}: {found}")
    for flip in results["flips"]:
        one, two = cases[flip["candidate"]], cases[flip["reference"]]
        for side, sign in (("gained", 1), ("lost", -1)):
            ids = [i for i in one if one[i]["correct"] - two[i]["correct"] == sign]
            need(sorted(ids) == sorted(flip[side]), f"{flip['candidate']}: cases {side}")
    return f"{sum(map(len, cases.values()))} answers scored and counted again"


def decide(decision: Any, plan: Any, cases: dict[str, Cases], members: Members) -> Found | None:
    """(value, lower, upper) of a decision's statistic; None where this program cannot tell."""
    kind, candidate, reference = (decision.get(k) for k in ("statistic", "candidate", "reference"))
    if kind in ("accuracy", "valid-json-share"):
        what = "correct" if kind == "accuracy" else "valid"
        found = _tally(_scoped(cases[candidate], decision, plan), what=what)
        return found["correct"] / found["cases"], None, None
    if kind in ("accuracy-difference", "mcnemar"):
        one, two = (_scoped(cases[name], decision, plan) for name in (candidate, reference))
        differences: list[float] = [one[i]["correct"] - two[i]["correct"] for i in one]
        if kind == "mcnemar":
            gained, lost = differences.count(1), differences.count(-1)
            n = gained + lost
            tail = sum(math.comb(n, k) for k in range(gained, n + 1))
            return float(Fraction(tail, 2**n)), None, None
        return paired(differences, decision.get("z"))
    if kind == "retention-difference":
        before = _losses(members, reference, decision["probes"])
        after = _losses(members, candidate, decision["probes"])
        need(before.keys() == after.keys(), f"{decision['name']}: other documents")
        return paired([after[i] - before[i] for i in after], decision.get("z"))
    if kind in ("speed-ratio", "cost-ratio", "bytes-ratio", "parameter-agreement"):
        return executed(decision, members), None, None
    return None


def _losses(members: Members, model: str, probes: str) -> dict[str, float]:
    lines = rows(members, f"models/{model}/retention-{probes}.jsonl")
    return {row["id"]: row["loss"] for row in lines}


def _scoped(cases: Cases, decision: Any, plan: Any) -> Cases:
    scope = decision.get("scope") or {}
    trained = plan["data"]["tasks"]["train_wordings"]
    wanted = scope.get("wordings")
    return {
        i: case
        for i, case in cases.items()
        if case["family"] in scope.get("families", [case["family"]])
        and wanted in (None, "trained" if case["wording"] in trained else "held-out")
    }


def paired(differences: list[float], z: float | None) -> Found:
    """Mean, and mean -/+ z s / sqrt(n) with s over n - 1."""
    n, exact = len(differences), [Fraction(d) for d in differences]
    mean = sum(exact) / n
    if z is None:
        return float(mean), None, None
    spread = math.sqrt(sum((d - mean) ** 2 for d in exact) / (n - 1))
    margin = z * spread / math.sqrt(n)
    return float(mean), float(mean) - margin, float(mean) + margin


def executed(decision: Any, members: Members) -> float:
    """From the trainer's receipts. Timers are the slowest rank's; received bytes are the same data
    again and are not added."""
    ours, theirs = (
        [
            parse(data)
            for path, data in members.items()
            if path.startswith(f"arms/{name}/receipt-") and path.endswith(".json")
        ]
        for name in (decision["candidate"], decision.get("reference"))
    )
    kind, timer = decision["statistic"], (decision.get("timer") or "process").replace("-", "_")
    if kind == "parameter-agreement":
        return float(len({rank["body"]["parameter_root"] for rank in ours}) == 1)
    if kind == "bytes-ratio":
        return sent(ours) / sent(theirs)
    slowest = [max(rank["timers"][timer] for rank in ranks) for ranks in (ours, theirs)]
    if kind == "speed-ratio":
        return float(slowest[1] / slowest[0])
    used = [slowest[0] * len(ours), slowest[1] * len(theirs)]
    if timer == "process":
        used = [sum(rank["timers"]["allocated"] for rank in ranks) for ranks in (ours, theirs)]
    return float(used[0] / used[1])


def sent(ranks: list[Any]) -> int:
    """Bytes of all hosts; workers of one computer share one loopback counter."""
    shared = all(rank["traffic"]["interface"] == "lo" for rank in ranks)
    counted = ranks[:1] if shared else ranks
    return sum(int(rank["traffic"]["sent_bytes"]) for rank in counted)


def check_decisions(
    plan: Any, results: Any, cases: dict[str, Cases], members: Members
) -> Iterator[str]:
    """Every decision again. Yields a line each."""
    told = {one["name"]: one for one in results["decisions"]}
    undecided = (results.get("incomplete") or {}).get("not_decided", [])
    due = [d for d in plan.get("decisions", []) if d["name"] not in undecided]
    need(list(told) == [d["name"] for d in due], "other decisions")
    for declared in due:
        recorded, name = told[declared["name"]], declared["name"]
        value, margin, bound = recorded.get("value"), declared["margin"], declared["bound"]
        need(recorded["margin"] == margin and recorded["bound"] == bound, f"{name}: another rule")
        found = decide(declared, plan, cases, members) if value is not None else None
        compared, how = recorded.get("bound_value", value), "taken from results.json"
        if found is not None:
            how = "worked out again"
            compared = {"lower": found[1], "upper": found[2]}.get(bound, found[0])
            need(_close(found[0], value), f"{name}: the value is {found[0]}, recorded {value}")
            if bound in ("lower", "upper"):
                need(_close(compared, recorded["bound_value"]), f"{name}: the bound is {compared}")
        passed = value is not None and RULES[bound](compared, margin)
        need(passed == recorded["passed"], f"{name}: recorded as passed={recorded['passed']}")
        yield f"{name}: {'PASS' if passed else 'FAIL'}, {compared} against {margin} ({how})"


def _close(one: float | None, two: float | None) -> bool:
    return (
        one is not None and two is not None and math.isclose(one, two, rel_tol=CLOSE, abs_tol=CLOSE)
    )


def check(folder: Path) -> Iterator[str]:
    """Yields what was found, a line each. Raises Wrong."""
    yield check_sums(folder)
    closing = parse((folder / "closing.json").read_bytes())
    members = read_archive(folder / "evidence.tar.gz", closing["archive"]["sha256"])
    yield f"archive {closing['archive']['sha256']}, {len(members)} members, each with its hash"
    need((folder / "results.json").read_bytes() == members["results.json"], "results.json differs")
    resources = parse((folder / "resources.json").read_bytes())
    need(resources == closing["resources"], "resources.json differs from closing.json")
    yield check_order(members)
    plan, results = parse(members["plan.json"]), parse(members["results.json"])
    cases = score(members, plan, [model["name"] for model in results["models"]])
    yield check_counts(cases, results)
    yield from check_decisions(plan, results, cases, members)


def main(words: list[str]) -> int:
    """The exit status: 0 nothing differs, 1 something does, 2 wrong use."""
    if len(words) != 2:
        print(f"usage: {words[0]} FOLDER", file=sys.stderr)
        return 2
    try:
        for line in check(Path(words[1])):
            print("".join(c if c.isprintable() else "?" for c in line))
    except Wrong as wrong:
        print(f"WRONG: {wrong}", file=sys.stderr)
        return 1
    except (OSError, EOFError, KeyError, IndexError, TypeError, ValueError, ArithmeticError,
            AttributeError, tarfile.TarError) as error:  # fmt: skip
        print(f"WRONG: the evidence is damaged ({type(error).__name__}: {error})", file=sys.stderr)
        return 1
    print("What was checked agrees. Not checked: signatures, the clock, the neural computation.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
