"""Preparation, from the side of whoever reads the folder."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import BadInput, Refused
from harness.exposure import build_ledger
from harness.inputs import PreparedInputs, prepare_inputs
from harness.inputs.identity import identity_of, list_files
from harness.inputs.layout import deal_schedule
from tests.unit.inputs.hub_server import COMMIT, Hub, serving
from tests.unit.inputs.small_plans import byte_tokenizer, save_tokenizer, small_plan
from trainer.contract import hash_of, read_json, read_lines

NOTHING = build_ledger("0" * 64, [])
HOST = {
    "train.clean.jsonl", "train.damaged.jsonl", "schedule.json", "development.cases.jsonl",
    "test.cases.jsonl", "retention.prose.jsonl", "retention.like-replay.jsonl",
}  # fmt: skip
OPERATOR = {
    "development.answers.jsonl", "test.answers.jsonl", "text.clean.jsonl", "text.damaged.jsonl",
    "text.retention.prose.jsonl", "text.retention.like-replay.jsonl",
}  # fmt: skip


def prepare(folder: Path, changes: dict[str, Any] | None = None, **more: Any) -> PreparedInputs:
    return prepare_inputs(
        small_plan(changes),
        folder,
        save_tokenizer(folder),
        folder / "inputs",
        **({"ledger": NOTHING, "hub_endpoint": None} | more),
    )


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> tuple[PreparedInputs, Path]:
    folder = tmp_path_factory.mktemp("prepared")
    return prepare(folder), folder / "inputs"


def test_the_folder_holds_the_files_of_the_contract(
    prepared: tuple[PreparedInputs, Path],
) -> None:
    result, folder = prepared
    assert {path.name for path in folder.iterdir()} == HOST | OPERATOR
    assert {file.path for file in result.host_files} == HOST
    assert {file.path for file in result.operator_files} == OPERATOR
    rows = [file.to_json() for file in list_files(folder)]
    assert result.identity == hash_of(rows) == identity_of(result.files)
    assert [row["path"] for row in rows] == sorted(HOST | OPERATOR)


def test_lines_have_exactly_the_fields_of_the_contract(
    prepared: tuple[PreparedInputs, Path],
) -> None:
    _, folder = prepared
    task = {"id", "kind", "family", "wording", "messages", "damaged"}
    for name, fields in {
        "train.clean": {"id", "kind", "tokens", "targets", "weight"},
        "train.damaged": {"id", "kind", "tokens", "targets", "weight"},
        "test.cases": {"id", "tokens"},
        "development.cases": {"id", "tokens"},
        "retention.prose": {"id", "tokens", "targets"},
        "test.answers": {"id", "family", "wording", "prompt", "expected"},
        "text.clean": task,
        "text.retention.prose": task,
    }.items():
        assert all(row.keys() == fields for row in read_lines(folder / f"{name}.jsonl"))


def test_no_host_file_holds_an_expected_answer(prepared: tuple[PreparedInputs, Path]) -> None:
    _, folder = prepared
    for role in ("development", "test"):
        answers = read_lines(folder / f"{role}.answers.jsonl")
        for case, known in zip(read_lines(folder / f"{role}.cases.jsonl"), answers, strict=True):
            assert case["id"] == known["id"]
            text = byte_tokenizer().decode(case["tokens"], skip_special_tokens=False)
            assert text == f"<|im_start|>user\n{known['prompt']}<|im_end|>\n<|im_start|>assistant\n"


def test_the_damaged_corpus_differs_in_the_declared_targets_only(
    prepared: tuple[PreparedInputs, Path],
) -> None:
    result, folder = prepared
    clean, damaged = (read_lines(folder / f"text.{name}.jsonl") for name in ("clean", "damaged"))
    hit = 0
    for one, two in zip(clean, damaged, strict=True):
        declared = one["kind"] == "task" and int(one["id"], 16) % 4 == 0
        hit += declared
        assert two["damaged"] == declared
        assert not one["damaged"]
        assert (one["messages"] != two["messages"]) == declared
        assert one["messages"][:-1] == two["messages"][:-1]
        assert {**one, "messages": 0, "damaged": 0} == {**two, "messages": 0, "damaged": 0}
    assert result.damaged == hit > 0


def test_counts_are_what_the_files_hold(prepared: tuple[PreparedInputs, Path]) -> None:
    result, folder = prepared
    assert result.counts == {
        "train-tasks": 48,
        "train-replay": 16,
        "development": 8,
        "test": 24,
        "retention.prose": 12,
        "retention.like-replay": 6,
    }
    schedule = read_json(folder / "schedule.json")["updates"]
    for arm, corpus in (("clean", "clean"), ("spoilt", "damaged")):
        rows = read_lines(folder / f"train.{corpus}.jsonl")
        assert {(row["kind"], row["weight"]) for row in rows} == {("task", 8), ("replay", 1)}
        drawn = [rows[number] for update in schedule for number in update]
        sizes = [sum(end - start for start, end in row["targets"]) for row in drawn]
        assert result.arms[arm].documents == 80
        assert result.arms[arm].tokens == sum(len(row["tokens"]) for row in drawn)
        assert result.arms[arm].targets == sum(sizes)
        assert result.arms[arm].weighted_targets == sum(
            row["weight"] * size for row, size in zip(drawn, sizes, strict=True)
        )
        assert result.longest[f"train.{corpus}"] == max(len(row["tokens"]) for row in rows)
    assert result.held_out_wordings == (2, 3)
    assert (result.replay_source, result.distinct_conversations) == ("generated", 16)
    assert result.end_tokens == (257,)


def test_exposure_names_every_id_by_its_first_digits(
    prepared: tuple[PreparedInputs, Path],
) -> None:
    result, folder = prepared
    rows = read_lines(folder / "train.clean.jsonl")
    assert result.exposure["train"] == tuple(r["id"][:16] for r in rows if r["kind"] == "task")
    assert result.exposure["replay"] == tuple(r["id"][:16] for r in rows if r["kind"] == "replay")
    assert {role: len(ids) for role, ids in result.exposure.items()} == {
        "train": 48,
        "replay": 16,
        "development": 8,
        "test": 24,
        "retention": 18,
    }


def test_replay_and_probes_share_no_text(prepared: tuple[PreparedInputs, Path]) -> None:
    result, _ = prepared
    assert not set(result.exposure["replay"]) & set(result.exposure["retention"])


SCRIPT = """
import sys
from pathlib import Path
from tests.unit.inputs.test_prepare import prepare
print(prepare(Path(sys.argv[1])).identity)
"""


@pytest.mark.parametrize(
    "changes",
    [
        {"LC_ALL": "tr_TR.UTF-8", "TZ": "Asia/Kathmandu", "PYTHONHASHSEED": "1"},
        {"LC_ALL": "C", "TZ": "America/Lima", "PYTHONHASHSEED": "2", "PYTHONUTF8": "0"},
        {"TOKENIZERS_PARALLELISM": "false", "RAYON_NUM_THREADS": "1", "PYTHONOPTIMIZE": "1"},
    ],
)
def test_another_process_and_surroundings_write_the_same_bytes(
    prepared: tuple[PreparedInputs, Path], tmp_path: Path, changes: dict[str, str]
) -> None:
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path)],
        env={**os.environ, **changes, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=True,
        cwd="/",
    )
    result, folder = prepared
    assert done.stdout.strip() == result.identity
    for path in folder.iterdir():
        assert (tmp_path / "inputs" / path.name).read_bytes() == path.read_bytes()


def test_another_seed_is_another_identity(
    prepared: tuple[PreparedInputs, Path], tmp_path: Path
) -> None:
    assert prepare(tmp_path, {"seed": "b"}).identity != prepared[0].identity


def test_preparing_again_into_the_same_folder_is_harmless(tmp_path: Path) -> None:
    assert prepare(tmp_path) == prepare(tmp_path)


def test_a_folder_with_something_else_is_not_overwritten(tmp_path: Path) -> None:
    prepare(tmp_path)
    (tmp_path / "inputs" / "note").write_text("mine")
    with pytest.raises(BadInput, match="holds other files"):
        prepare(tmp_path)
    assert (tmp_path / "inputs" / "note").exists()


def test_a_document_is_never_cut(tmp_path: Path) -> None:
    with pytest.raises(BadInput) as caught:
        prepare(tmp_path, {"recipe.context_tokens": 200})
    assert caught.value.where == "plan#/recipe/context_tokens"
    role, identity, *rest = caught.value.what.split(" ")
    assert role == "train.clean"
    assert len(identity) == 16
    assert " ".join(rest[0:1] + rest[2:]) == "has tokens, over the limit of 200"
    assert not list(tmp_path.glob("*inputs*"))


def test_a_prompt_and_its_answer_fit_the_context(tmp_path: Path) -> None:
    (tmp_path / "whole").mkdir()
    longest = prepare(tmp_path / "whole").longest
    limit = max(longest["test"], longest["development"]) + 96
    (tmp_path / "just").mkdir()
    prepare(tmp_path / "just", {"recipe.context_tokens": limit})
    with pytest.raises(BadInput, match=r"tokens and 96 new ones, over the limit of") as caught:
        prepare(tmp_path, {"recipe.context_tokens": limit - 1})
    assert caught.value.what.split(" ")[0] in ("development", "test")


def test_an_answer_that_cannot_be_given_in_full_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"right answer of .* over the limit of 10") as caught:
        prepare(tmp_path, {"evaluation.max_new_tokens": 10})
    assert caught.value.where == "plan#/evaluation/max_new_tokens"


def test_a_role_that_cannot_be_filled_is_an_error(tmp_path: Path) -> None:
    probes = [{"name": "prose", "source": {"kind": "passages"}, "count": 5000}]
    with pytest.raises(BadInput, match=r"'retention.prose' needs 5000 different texts"):
        prepare(tmp_path, {"data.retention": probes})


def test_an_earlier_studys_cases_are_refused(
    prepared: tuple[PreparedInputs, Path], tmp_path: Path
) -> None:
    earlier = {"plan_hash": "1" * 64, "plan": "first", "exposure": prepared[0].exposure}
    with pytest.raises(Refused, match="of the earlier plan 'first'"):
        prepare(tmp_path, ledger=build_ledger("2" * 64, [earlier]))
    assert not list(tmp_path.glob("*inputs*"))
    again = prepare(tmp_path, ledger=build_ledger("1" * 64, [earlier]))
    assert again.notes == ("This is a replication: the plan 'first' was prepared before.",)


def test_replay_from_a_hub_skips_what_is_too_long_and_says_so(tmp_path: Path) -> None:
    lines = [
        f'{{"messages": [{{"role": "user", "content": "Hello {n}"}},'
        f' {{"role": "assistant", "content": "{"ha" * (2 if n % 3 else 2000)}"}}]}}'
        for n in range(30)
    ]
    data = "\n".join(lines + lines[:6]).encode()
    hub = Hub(files={("datasets/org/talk", "train.jsonl"): data})
    source = {
        "kind": "hub-dataset",
        "repo": "org/talk",
        "revision": COMMIT,
        "file": "train.jsonl",
        "column": "messages",
    }
    changes: dict[str, Any] = {"data.replay": source, "data.roles.train_replay": 20}
    with serving(hub), pytest.MonkeyPatch.context() as patch:
        patch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
        result = prepare(tmp_path, changes, hub_endpoint=hub.address)
        changes["data.roles.train_replay"] = 21
        with pytest.raises(BadInput, match=r"'replay' needs 21 .* has 20 \(4 repeated, 12 too"):
            prepare(tmp_path, changes, hub_endpoint=hub.address)
    assert result.replay_source == f"org/talk@{COMMIT}/train.jsonl"
    skipped = result.skipped["replay"]
    assert skipped.too_long > 0
    assert result.notes == (
        "replay was filled from a data set's rows of at most 2048 tokens: "
        f"{skipped.too_long} longer ones and {skipped.repeated} repeated ones were passed over.",
    )
    assert result.distinct_conversations == 20


@given(st.integers(1, 60), st.integers(1, 12), st.integers(1, 16), st.text(max_size=4))
def test_the_schedule_uses_documents_equally_often(
    documents: int, updates: int, global_batch: int, seed: str
) -> None:
    dealt = deal_schedule(seed, documents=documents, updates=updates, global_batch=global_batch)
    assert [len(update) for update in dealt] == [global_batch] * updates
    used = Counter(number for update in dealt for number in update)
    counts = [used[number] for number in range(documents)]
    assert set(used) <= set(range(documents))
    assert max(counts) - min(counts) <= 1
