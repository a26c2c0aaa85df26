"""A billing export beside the bound: CUR or Data Exports, CSV (also gzip) or Parquet.

Columns: docs.aws.amazon.com/cur/latest/userguide/data-dictionary.html (CUR 2.0: 'line_item_...',
'resource_tags' as a map; before it: 'lineItem/...', a column for each tag).
"""

from __future__ import annotations

import csv
import gzip
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from harness.errors import BadInput
from harness.fleet.tags import FLEET
from harness.plan.kinds import Text
from harness.strict import Model

COUNTED = ("Usage", "DiscountedUsage", "SavingsPlanCoveredUsage", "Fee", "RIFee")
"""Line types that are usage. Taxes, credits and refunds are no part of the bound."""
USAGE, COST, KIND, START = "lineitemusagetype", "lineitemunblendedcost", "lineitemlineitemtype", \
    "lineitemusagestartdate"  # fmt: skip
CURRENCY = "lineitemcurrencycode"
TAGS = "resourcetags"


class Billed(Model):
    """One line of the export that belongs to the fleet."""

    usage_type: Text
    usd: str
    """Exact decimal text; may be negative."""
    counted: bool
    """False: a tax, credit or refund."""


def read_export(path: Path, fleet: str) -> tuple[Billed, ...]:
    """The export's lines whose fleet tag is exactly this. Raises BadInput for what is no export."""
    rows = _parquet(path) if path.suffix == ".parquet" else _csv(path)
    return tuple(_billed(path, i, row) for i, row in enumerate(rows, 2) if _fleet(row) == fleet)


def _plain(name: str) -> str:
    """A column's or tag's name without its spelling, which differs by version of the export."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _csv(path: Path) -> Iterator[dict[str, Any]]:
    try:
        with (gzip.open if path.suffix == ".gz" else open)(path, "rt", newline="",
                                                           encoding="utf-8") as handle:  # fmt: skip
            reader = csv.reader(handle, strict=True)
            names = _columns(path, next(reader, []))
            for row in reader:
                if len(row) != len(names):
                    raise BadInput(
                        f"has {len(row)} fields instead of {len(names)}",
                        where=f"{path} line {reader.line_num}",
                    )
                yield dict(zip(names, row, strict=True))
    except (OSError, EOFError, UnicodeDecodeError, csv.Error) as error:
        raise BadInput(f"is no readable CSV ({error})", where=str(path)) from None


def _parquet(path: Path) -> Iterator[dict[str, Any]]:
    import pyarrow
    import pyarrow.parquet

    try:
        table = pyarrow.parquet.ParquetFile(path)
        names = _columns(path, table.schema_arrow.names)
        for batch in table.iter_batches(batch_size=10_000):
            for row in batch.to_pylist():
                yield dict(zip(names, row.values(), strict=True))
    except (OSError, pyarrow.ArrowException) as error:
        raise BadInput(f"is no readable Parquet file ({error})", where=str(path)) from None


def _columns(path: Path, names: Iterable[str]) -> list[str]:
    plain = [_plain(name) for name in names]
    missing = [name for name in (USAGE, COST, KIND) if name not in plain]
    tagged = TAGS in plain or _tag_column() in plain
    if missing or not tagged:
        what = f"its columns lack {', '.join(missing)}" if missing else f"no column has {FLEET}"
        raise BadInput(
            f"is no billing export of this study: {what} (activate the tag '{FLEET}' as a "
            "cost-allocation tag in the billing console; it appears within a day)",
            where=str(path),
        )
    return plain


def _tag_column() -> str:
    return _plain(f"resourceTags/user:{FLEET}")


def _fleet(row: Mapping[str, Any]) -> str:
    found = row.get(_tag_column())
    if found is None and row.get(TAGS):
        tags = row[TAGS]
        pairs = json.loads(tags) if isinstance(tags, str) else dict(tags)
        found = {_plain(name): value for name, value in pairs.items()}.get(_plain(f"user{FLEET}"))
    return str(found or "")


def _billed(path: Path, line: int, row: Mapping[str, Any]) -> Billed:
    try:
        cost = row[COST]
        usd = Decimal(repr(cost) if isinstance(cost, float) else str(cost or "0"))
    except InvalidOperation:
        usd = Decimal("NaN")
    if not usd.is_finite() or row.get(CURRENCY, "USD") not in ("USD", "", None):
        raise BadInput("its cost is no amount of US dollars", where=f"{path} line {line}")
    return Billed(
        usage_type=str(row[USAGE] or "no usage type"),
        usd=f"{usd:f}",
        counted=row.get(KIND) in COUNTED,
    )
