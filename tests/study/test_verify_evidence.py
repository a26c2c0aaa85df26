"""What `verify` and the stand-alone verifier find: one flipped byte, and forgeries that add up."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness import standalone
from harness.errors import BadInput
from harness.publish import Weights, publish, run_of
from harness.seal import envelope
from harness.seal.extract import extract
from harness.seal.limits import CAPS
from harness.seal.tar import seal
from harness.verify import verify
from harness.verify.sums import write_sums
from tests.study.conftest import TOP, Desk
from trainer import contract

TRIALS = 200
Change = Callable[[Path], None]


@pytest.fixture(scope="module")
def kept(finished: Desk, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """evidence/toy, as `harness keep` writes it. Tests only look at it."""
    into = tmp_path_factory.mktemp("kept")
    done = finished.harness("keep", str(finished.latest), "--into", str(into))
    assert done.code == 0, done.err
    return into / "toy"


@pytest.fixture(scope="module")
def unpacked(kept: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its members."""
    folder = tmp_path_factory.mktemp("unpacked") / "members"
    extract(kept / "evidence.tar.gz", folder, expected_tar_sha256=None)
    return folder


def test_whole_evidence_is_verified_and_says_what_it_cannot_prove(
    finished: Desk, kept: Path
) -> None:
    done = finished.harness("verify", str(kept))
    assert done.code == 0, done.err
    for words in ("digests", "as committed", "selection", "scored again", "independent checks",
                  "worked out again", "every byte is the same", "the neural computation",
                  "the clock"):  # fmt: skip
        assert words in done.out
    assert "PNG" not in done.out
    alone = finished.harness("verify", str(kept / "evidence.tar.gz"))
    assert alone.code == 0, alone.err
    assert "preservation, teardown and cost" in alone.out


def test_one_flipped_byte_of_any_file_is_found(kept: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(kept, tmp_path / "copy"))
    files = sorted(path for path in copy.rglob("*") if path.is_file())
    drawn = random.Random(7)
    for trial in range(TRIALS):
        path = files[trial % len(files)]
        whole = path.read_bytes()
        at, bit = drawn.randrange(len(whole)), 1 << drawn.randrange(8)
        path.write_bytes(whole[:at] + bytes([whole[at] ^ bit]) + whole[at + 1 :])
        with pytest.raises(BadInput):
            verify(copy)
        path.write_bytes(whole)
    verify(copy)


def test_one_flipped_byte_of_any_member_is_found_in_an_archive_alone(
    kept: Path, unpacked: Path, tmp_path: Path
) -> None:
    """The envelope around the changed tar is made anew: only the tar's own rules are left."""
    with open(kept / "evidence.tar.gz", "rb") as handle:
        reader = envelope.Reader(handle, caps=CAPS)
        tar = b"".join(iter(lambda: _some(reader), b""))
    names = [p for p in sorted(unpacked.rglob("*")) if p.is_file() and p.stat().st_size > 8]
    drawn, spoiled = random.Random(11), tmp_path / "spoiled.tar.gz"
    for path in names:
        data = path.read_bytes()
        at = tar.index(data) + drawn.randrange(len(data))
        changed = tar[:at] + bytes([tar[at] ^ 1 << drawn.randrange(8)]) + tar[at + 1 :]
        with open(spoiled, "wb") as out:
            envelope.write(out, [changed])
        with pytest.raises(BadInput):
            verify(spoiled)


def _some(reader: envelope.Reader) -> bytes:
    try:
        return reader.exactly(512)
    except BadInput:
        return b""


def forge(kept: Path, unpacked: Path, folder: Path, change: Change) -> Path:
    """Evidence whose digests all add up after `change` was made to its members."""
    members = Path(shutil.copytree(unpacked, folder / "members"))
    (members / "index.json").unlink()
    change(members)
    forged = Path(shutil.copytree(kept, folder / "forged"))
    sealed = seal(members, forged / "evidence.tar.gz")
    closing = json.loads((forged / "closing.json").read_bytes())
    closing["archive"]["sha256"] = sealed.tar_sha256
    contract.write_json(forged / "closing.json", closing)
    shutil.copyfile(members / "results.json", forged / "results.json")
    write_sums(forged)
    return forged


def edit(path: Path, before: str, after: str, count: int = 1) -> None:
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after, count))


def wrong_is_right(members: Path) -> None:
    edit(members / "models/reference/scores.jsonl", '"correct":false', '"correct":true')


def other_tokens(members: Path) -> None:
    path = members / "models/pair/answers-test.jsonl"
    first, second, *rest = contract.read_lines(path)
    first["tokens"] = first["tokens"][:-1]
    contract.write_lines(path, [first, second, *rest])


def passed_is_failed(members: Path) -> None:
    edit(members / "results.json", '"passed":true', '"passed":false')


def other_question(members: Path) -> None:
    edit(members / "plan.json", "hold together?", "hold well together?")


def other_input(members: Path) -> None:
    edit(members / "inputs/test.answers.jsonl", '"units":', '"units": ')


def other_order(members: Path) -> None:
    path = members / "commits.json"
    contract.write_json(path, contract.read_json(path)[::-1])


def other_commit(members: Path) -> None:
    last = contract.read_json(members / "commits.json")[1]["commit"]
    edit(members / "commits" / last, "Select", "select")


def other_selection(members: Path) -> None:
    edit(members / "selection.json", '"run":"', '"run":"x')


def other_trainer(members: Path) -> None:
    with open(members / "source/trainer/launch", "a") as handle:
        handle.write("\n")


def other_loss(members: Path) -> None:
    edit(members / "arms/single/losses-0.jsonl", '"lr":0.001', '"lr":0.002')


FORGERIES: dict[str, tuple[Change, bool]] = {
    "a wrong answer counted as right": (wrong_is_right, True),
    "other tokens than the words": (other_tokens, False),
    "a decision turned round": (passed_is_failed, True),
    "another question": (other_question, True),
    "another input": (other_input, False),
    "commits in another order": (other_order, True),
    "another commit under the same name": (other_commit, True),
    "another selection": (other_selection, True),
    "another trainer": (other_trainer, False),
    "another learning rate": (other_loss, False),
}
"""What was changed, and whether the stand-alone verifier can find it too."""


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forgery_whose_digests_add_up_is_found(
    kept: Path, unpacked: Path, tmp_path: Path, name: str
) -> None:
    change, alone = FORGERIES[name]
    forged = forge(kept, unpacked, tmp_path, change)
    with pytest.raises(BadInput):
        verify(forged)
    if alone:
        with pytest.raises(standalone.Wrong):
            list(standalone.check(forged))


def test_the_same_evidence_sealed_again_is_no_forgery(
    kept: Path, unpacked: Path, tmp_path: Path
) -> None:
    """So the forgeries above are found for what was changed."""
    forged = forge(kept, unpacked, tmp_path, lambda members: None)
    assert verify(forged) == verify(kept)


def test_the_stand_alone_verifier_needs_nothing_but_python(kept: Path, tmp_path: Path) -> None:
    program = tmp_path / "verify.py"
    shutil.copyfile(TOP / "harness" / "standalone.py", program)
    assert len(program.read_text().splitlines()) < 400
    done = run_alone(program, kept)
    assert done.returncode == 0, done.stderr
    assert "pair-gains: PASS" in done.stdout
    assert "worked out again" in done.stdout
    damaged = Path(shutil.copytree(kept, tmp_path / "damaged"))
    (damaged / "results.json").write_bytes(b"[" * 100_000)
    again = run_alone(program, damaged)
    assert again.returncode == 1
    assert again.stderr.startswith("WRONG: results.json differs from SHA256SUMS")
    assert run_alone(program, tmp_path / "nothing").returncode == 1


def test_the_program_that_judged_is_in_the_archive_and_judges_again(
    kept: Path, unpacked: Path, tmp_path: Path
) -> None:
    programs = tmp_path / "programs"
    with tarfile.open(unpacked / "programs.tar") as tar:
        tar.extractall(programs, filter="data")
    for name in ("harness/report/templates/index.html", "tests/numerics/test_objective.py"):
        assert (programs / name).read_bytes() == (TOP / name).read_bytes()
    done = subprocess.run(
        [sys.executable, "-m", "harness", "verify", str(kept)],
        cwd=programs, env={"PATH": os.environ["PATH"], "PYTHONPATH": str(programs)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "every byte is the same" in done.stdout


def test_weights_are_published_on_request_with_a_licence_and_a_card(
    finished: Desk, kept: Path, tmp_path: Path
) -> None:
    site, licence = tmp_path / "site", tmp_path / "TOY-LICENCE"
    licence.write_text("Do as you like.\n")
    weights = Weights(("pair",), run_of(kept, finished.runs))
    with pytest.raises(BadInput, match="--licence"):
        publish(kept, site, weights=weights)
    with pytest.raises(BadInput, match="no arm 'other'"):
        publish(kept, site, weights=Weights(("other",), finished.latest), licences=[licence])
    assert not site.exists()
    publish(kept, site, weights=weights, licences=[licence])
    assert run_alone(site / "verify.py", site).returncode == 0
    folder = site / "candidates" / "pair"
    results = json.loads((kept / "results.json").read_bytes())
    root = next(each["parameter_root"] for each in results["models"] if each["name"] == "pair")
    assert contract.parameter_root(folder / "model.safetensors") == root
    assert (folder / "tokenizer.json").is_file()
    assert root in (folder / "README.md").read_text()
    assert not (site / "candidates" / "single").exists()
    told = (site / "THIRD-PARTY.md").read_text()
    assert "Weights are here of pair" in told and "licences/TOY-LICENCE" in told
    assert (site / "licences" / "TOY-LICENCE").read_text() == licence.read_text()


def run_alone(program: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-I", "-S", str(program), str(folder)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_a_report_of_an_older_reporter_is_compared_figure_by_figure(
    finished: Desk, tmp_path: Path
) -> None:
    copy = Path(shutil.copytree(finished.latest, tmp_path / "copy", symlinks=True))
    path = copy / "report" / "report.json"
    report: dict[str, Any] = json.loads(path.read_bytes())
    report["reporter"]["version"] = "1"
    contract.write_json(path, report)
    (copy / "report" / "index.html").write_text("as it was then")
    assert "figures that both have" in "".join(verify(copy).lines)
    report["tables"]["accuracy"]["rows"][0]["cells"][1]["value"] = 16
    contract.write_json(path, report)
    with pytest.raises(BadInput, match="accuracy, all, correct"):
        verify(copy)


def test_a_published_folder_is_whole_and_can_be_checked(
    finished: Desk, kept: Path, tmp_path: Path
) -> None:
    site = tmp_path / "site"
    done = finished.harness("publish", str(kept), "--into", str(site))
    assert done.code == 0, done.err
    checked = run_alone(site / "verify.py", site)
    assert checked.returncode == 0, checked.stderr
    for name in (
        "index.html", "answers.html", "report.json", "figures/accuracy.svg", "SHA256SUMS",
        "plan.json", "commits.json", "resources.json", "LICENSE", "NOTICE", "README.md",
        "THIRD-PARTY.md", "environments/host-0.json", "cards/pair.md",
    ):  # fmt: skip
        assert (site / name).stat().st_size > 0, name
    rows = contract.read_lines(site / "answers" / "samples_pair.jsonl")
    assert len(rows) == 16
    right = json.loads((kept / "results.json").read_bytes())["models"][2]["overall"]["correct"]
    assert sum(row["exact_match"] for row in rows) == right > 0
    assert f"| all | 0 / 16 | {right} / 16 |" in (site / "cards" / "pair.md").read_text()
    assert "pair-gains" in (site / "cards" / "pair.md").read_text()
    assert "Modified from: made by the plan's trainer" in (site / "cards" / "pair.md").read_text()
    assert "No weights are here" in (site / "THIRD-PARTY.md").read_text()
    assert finished.harness("publish", str(kept), "--into", str(site)).code == 2
    damaged = Path(shutil.copytree(kept, tmp_path / "damaged"))
    (damaged / "results.json").write_text("{}")
    spoiled = finished.harness("publish", str(damaged), "--into", str(tmp_path / "no"))
    assert spoiled.code == 2
    assert not (tmp_path / "no").exists()
