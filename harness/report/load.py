"""Reading an unpacked archive into `Evidence`. Strict: a file that is wrong is one sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from harness.closing import ClosingRecord
from harness.errors import BadInput
from harness.measuring.measurements import Measurements, read_measurements
from harness.measuring.rows import LossLine, RetentionLine, ScoreLine
from harness.plan import Plan
from harness.prepared import Prepared
from harness.receipts import (
    RECEIPTS,
    EvaluateReceipt,
    ProbeReceipt,
    PushReceipt,
    RankReceipt,
    Receipt,
    ServeReceipt,
    StageName,
    TrainReceipt,
)
from harness.report.evidence import (
    Case,
    Commit,
    DevelopmentRun,
    Evidence,
    LossPoint,
)
from harness.results import Results
from harness.strict import Model, build, load
from trainer import contract

M = TypeVar("M", bound=Model)


class _Reader:
    """Reads files of one folder and remembers their hashes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files: dict[str, str] = {}

    def bytes(self, name: str) -> bytes | None:
        """A file's bytes, or None when it is absent. Raises BadInput when it cannot be read."""
        path = self.folder / name
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise BadInput(f"cannot be read ({error.strerror})", where=str(path)) from None
        self.files[name] = contract.sha256(data)
        return data

    def model(self, kind: type[M], name: str) -> M | None:
        """A JSON file as a model, or None when it is absent."""
        data = self.bytes(name)
        return None if data is None else load(kind, data, where=str(self.folder / name))

    def required(self, kind: type[M], name: str) -> M:
        """A JSON file as a model. Raises BadInput when it is absent."""
        found = self.model(kind, name)
        if found is None:
            raise BadInput("is missing, so this is no evidence", where=str(self.folder / name))
        return found

    def values(self, name: str) -> Iterator[tuple[Any, str]]:
        """Every line of a .jsonl file as (value, where); nothing when it is absent."""
        for number, line in enumerate((self.bytes(name) or b"").split(b"\n"), start=1):
            if line:
                where = f"{self.folder / name} line {number}"
                yield _parsed(line, where), where

    def rows(self, kind: type[M], name: str) -> tuple[M, ...]:
        """Every line of a .jsonl file as a model."""
        return tuple(build(kind, value, where=where) for value, where in self.values(name))

    def names(self, folder: str, prefix: str, suffix: str) -> list[str]:
        """The middles of file names `prefix*suffix` in a folder, sorted."""
        found = (path.name for path in (self.folder / folder).glob(f"{prefix}*{suffix}"))
        return sorted(name[len(prefix) : len(name) - len(suffix)] for name in found)


def load_evidence(folder: Path, closing: Path | None = None) -> Evidence:
    """Read an unpacked archive (harness/evidence_folder.py has the layout) and its closing record.

    plan.json, prepared.json and results.json must be there; any other file that is absent means
    that its stage did not run. Raises BadInput with file and JSON pointer or line.
    """
    reader = _Reader(folder)
    plan = reader.required(Plan, "plan.json")
    plan_data = reader.bytes("plan.json") or b""
    prepared = reader.required(Prepared, "prepared.json")
    results = reader.required(Results, "results.json")
    receipts = _receipts(reader)
    models = plan.models
    return Evidence(
        plan=plan,
        plan_hash=contract.hash_of(contract.parse(plan_data)),
        prepared=prepared,
        results=results,
        closing=None if closing is None else _closing(closing),
        commits=_listed(reader, Commit, "commits.json"),
        receipts=receipts,
        cases=_cases(reader, models),
        retention={model: _retention(reader, model) for model in models},
        losses={arm: _losses(reader, arm) for arm in plan.arm_names},
        ranks={arm: _ranks(reader, arm) for arm in plan.arm_names},
        measurements=_measurements(folder, plan, prepared, receipts),
        development=_listed(reader, DevelopmentRun, "development.json"),
        environments=_environments(receipts),
        limits=_limits(plan, prepared, results, receipts),
        files=dict(sorted(reader.files.items())),
    )


def _parsed(data: bytes, where: str) -> Any:
    try:
        return contract.parse(data, where="the line")
    except contract.ContractError as error:
        raise BadInput(str(error), where=where) from None


def _closing(path: Path) -> ClosingRecord:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise BadInput(f"cannot be read ({error.strerror})", where=str(path)) from None
    return load(ClosingRecord, data, where=str(path))


def _receipts(reader: _Reader) -> dict[StageName, Receipt]:
    found: dict[StageName, Receipt] = {}
    for stage, kind in RECEIPTS.items():
        receipt = reader.model(kind, f"receipts/{stage}.json")
        if receipt is not None:
            found[stage] = receipt
    return found


def _listed(reader: _Reader, kind: type[M], name: str) -> tuple[M, ...]:
    """A JSON file that holds a list; empty when it is absent."""
    data = reader.bytes(name)
    if data is None:
        return ()
    where = str(reader.folder / name)
    value = _parsed(data, where)
    if not isinstance(value, list):
        raise BadInput("is not a list", where=where)
    return tuple(build(kind, row, where=f"{where}#/{i}") for i, row in enumerate(value))


def _measurements(
    folder: Path, plan: Plan, prepared: Prepared, receipts: dict[StageName, Receipt]
) -> Measurements | None:
    train, evaluate = receipts.get("train"), receipts.get("evaluate")
    if not isinstance(train, TrainReceipt):
        return None
    probe = receipts.get("probe")
    chosen = probe.microbatch if isinstance(probe, ProbeReceipt) else None
    served = receipts.get("serve")
    return read_measurements(
        folder,
        plan,
        train,
        evaluate if isinstance(evaluate, EvaluateReceipt) else None,
        prepared,
        microbatches=chosen,
        serve=served if isinstance(served, ServeReceipt) else None,
    )


def _cases(reader: _Reader, models: tuple[str, ...]) -> tuple[Case, ...]:
    """Test cases in the order of the inputs, each with the answers of all models."""
    scores = {model: _scores(reader, model) for model in models}
    questions = _by_id(reader.values("inputs/test.answers.jsonl"), _id_of)
    order = dict.fromkeys([*questions, *(id_ for rows in scores.values() for id_ in rows)])
    cases = []
    for id_ in order:
        answers = {model: rows[id_] for model, rows in scores.items() if id_ in rows}
        known = questions.get(id_)
        first = next(iter(answers.values()), None)
        prompt = None if known is None else known.get("prompt")
        cases.append(
            Case(
                id=id_,
                family=str(known["family"]) if known else first.family if first else "",
                wording=int(known["wording"]) if known else first.wording if first else 0,
                prompt=None if prompt is None else str(prompt),
                expected=None if known is None else _json_text(known.get("expected")),
                answers=answers,
            )
        )
    return tuple(cases)


def _id_of(value: Any) -> str:
    for field, kind in (("id", str), ("family", str), ("wording", int), ("prompt", str)):
        if not isinstance(value, dict) or not isinstance(value.get(field), kind):
            raise ValueError(f"the field '{field}' is missing or of a wrong type")
    return str(value["id"])


def _scores(reader: _Reader, model: str) -> dict[str, ScoreLine]:
    name = f"models/{model}/scores.jsonl"
    rows = ((row, name) for row in reader.rows(ScoreLine, name) if row.role == "test")
    return _by_id(rows, lambda row: row.id)


V = TypeVar("V")


def _by_id(rows: Iterator[tuple[V, str]], id_of: Callable[[V], str]) -> dict[str, V]:
    found: dict[str, V] = {}
    for value, where in rows:
        try:
            id_ = id_of(value)
        except ValueError as error:
            raise BadInput(str(error), where=where) from None
        if id_ in found:
            raise BadInput(f"the case {id_[:80]} appears twice", where=where)
        found[id_] = value
    return found


def _json_text(expected: Any) -> str | None:
    """The expected answer as JSON text; it may be stored as text already."""
    if expected is None or isinstance(expected, str):
        return expected
    return contract.canonical(expected).decode()


def _retention(reader: _Reader, model: str) -> dict[str, tuple[RetentionLine, ...]]:
    folder = f"models/{model}"
    return {
        probe: reader.rows(RetentionLine, f"{folder}/retention-{probe}.jsonl")
        for probe in reader.names(folder, "retention-", ".jsonl")
    }


def _losses(reader: _Reader, arm: str) -> tuple[LossPoint, ...]:
    rows = reader.rows(LossLine, f"arms/{arm}/losses-0.jsonl")
    return tuple(LossPoint(update=row.update, loss=row.loss) for row in rows)


def _ranks(reader: _Reader, arm: str) -> tuple[RankReceipt, ...]:
    folder = f"arms/{arm}"
    numbers = sorted(reader.names(folder, "receipt-", ".json"), key=lambda n: (len(n), n))
    return tuple(reader.required(RankReceipt, f"{folder}/receipt-{n}.json") for n in numbers)


def _environments(receipts: dict[StageName, Receipt]) -> dict[str, dict[str, str]]:
    push = receipts.get("push")
    if not isinstance(push, PushReceipt):
        return {}
    return {host.host: dict(sorted(host.environment_manifest.items())) for host in push.hosts}


def _limits(
    plan: Plan, prepared: Prepared, results: Results, receipts: dict[StageName, Receipt]
) -> tuple[str, ...]:
    said = [*plan.limits, *results.limits, *prepared.notes]
    said += [
        f"Cases of the role '{e.role}' were used before: {e.reason}" for e in plan.data.exposed
    ]
    for stage, receipt in receipts.items():
        said += [note for note in receipt.notes if stage not in ("seal", "preserve", "report")]
    if plan.environment == "as-found":
        said.append("The environments of the hosts were used as found; nothing was installed.")
    return tuple(dict.fromkeys(said))
