"""JSON Schemas of the files that a person sees, written from the models to docs/schemas/."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel

from harness.closing import ClosingRecord
from harness.develop import Development
from harness.fleet.hosts_file import HostsFile
from harness.journal import Entry
from harness.plan.plan import Plan
from harness.plan.pretty import pretty
from harness.prepared import Prepared
from harness.prices import PriceFile
from harness.receipts import RECEIPTS
from harness.report.document import ReportDocument
from harness.results import Resources, Results
from harness.run import RunRecord
from harness.selection import Selection
from harness.store.choose import StoreRecord
from trainer import contract

DIALECT = "https://json-schema.org/draft/2020-12/schema"
FOLDER = Path(__file__).parents[1] / "docs" / "schemas"
FILES: dict[str, type[BaseModel]] = {
    "closing": ClosingRecord,
    "development": Development,
    "hosts": HostsFile,
    "journal-entry": Entry,
    "plan": Plan,
    "prepared": Prepared,
    "prices": PriceFile,
    "report": ReportDocument,
    "resources": Resources,
    "results": Results,
    "run": RunRecord,
    "selection": Selection,
    "store": StoreRecord,
    **{f"receipt-{stage}": model for stage, model in RECEIPTS.items()},
}
"""By the name of the file in docs/schemas/."""


def schema_of(name: str) -> dict[str, Any]:
    """The JSON Schema of one kind of file (KeyError when there is no such kind)."""
    model = FILES[name]
    body = model.model_json_schema(by_alias=True, mode="validation")
    known = body["properties"].get("schema", {}).get("const", f"harness/{name}/1")
    return {"$schema": DIALECT, "$id": known, **body}


def schema_bytes(name: str) -> bytes:
    """The file's bytes, the same on every machine."""
    return (pretty(schema_of(name)) + "\n").encode()


def write_schemas(folder: Path = FOLDER) -> tuple[Path, ...]:
    """Write every schema; returns the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name in FILES:
        path = folder / f"{name}.json"
        contract.write_atomic(path, schema_bytes(name))
        paths.append(path)
    return tuple(paths)


def stale_schemas(folder: Path = FOLDER) -> tuple[str, ...]:
    """Names of the schemas whose file is missing or not what the models say."""
    return tuple(
        name
        for name in FILES
        if not (folder / f"{name}.json").is_file()
        or (folder / f"{name}.json").read_bytes() != schema_bytes(name)
    )


if __name__ == "__main__":
    for written in write_schemas():
        print(written.name)
