"""A trainer that exits with 0 and left something wrong: a failed attempt, said, and no more."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.receipts import TrainReceipt
from harness.strict import load_file
from tests.study.conftest import MakeDesk
from tests.toy_plan import toy_after

SPOIL = "rank == '0' and out.name.endswith('.1') and "
"""Only the first attempt is spoiled, so that the second one shows that the run goes on."""


def test_attempts_with_spoiled_outputs_fail_and_the_next_ones_count(
    make_desk: MakeDesk, tmp_path: Path
) -> None:
    code = f"""
if {SPOIL} task == "train" and recipe["arm"] == "single":
    weights = out / "candidate" / "model.safetensors"
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(data)
if {SPOIL} task == "train" and recipe["arm"] == "pair":
    losses = out / "losses-0.jsonl"
    losses.write_text(losses.read_text().replace('"loss":', '"loss":NaN,"was":', 1))
if {SPOIL} task == "evaluate":
    answers = out / "answers-test.jsonl"
    answers.write_text("\\n".join(reversed(answers.read_text().splitlines())) + "\\n")
"""
    desk = make_desk(trainer=toy_after(tmp_path, code))
    done = desk.run()
    assert done.code == 0, done.err
    said = " ".join(done.err.split())
    assert "the candidate has the parameter root" in said
    assert "NaN is not a JSON number" in said
    assert "are not those of the 16 cases in their order" in said
    train = load_file(TrainReceipt, desk.latest / "receipts" / "train.json")
    for arm in train.arms:
        assert [each.outcome for each in arm.attempts] == ["failed", "done"]
        assert str(tmp_path) not in arm.attempts[0].reason, "the record names no local path"


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("shutil.rmtree(out / 'candidate', ignore_errors=True)", "is missing or empty"),
        ("(out / f'receipt-{rank}.json').write_text('{}')", "the field"),
    ],
)
def test_an_arm_without_its_outputs_stops_resumable(
    make_desk: MakeDesk, tmp_path: Path, code: str, words: str
) -> None:
    desk = make_desk(trainer=toy_after(tmp_path, f"import shutil\nif task == 'train':\n    {code}"))
    done = desk.run()
    assert done.code == 4, done.err
    assert words in " ".join(done.err.split())
    assert "--local --abandon why" in " ".join(done.err.split())


def test_a_long_log_stays_whole_in_the_store_and_short_in_the_archive(
    make_desk: MakeDesk, tmp_path: Path
) -> None:
    noise = """
if task == "train" and recipe["arm"] == "single":
    os.write(1, b"\\xff\\0noise\\n" * 10**6)
"""
    desk = make_desk(trainer=toy_after(tmp_path, noise))
    done = desk.run()
    assert done.code == 0, done.err
    train = load_file(TrainReceipt, desk.latest / "receipts" / "train.json")
    (log,) = train.arms[0].attempts[0].logs
    assert log.bytes >= 8 * 10**6
    assert (desk.latest / "evidence.tar.gz").stat().st_size < 1 << 20
    assert desk.harness("verify", str(desk.latest)).code == 0
