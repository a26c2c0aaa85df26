"""Tables of the record: cost, commitments, validation, preservation, hosts, environments."""

from __future__ import annotations

from harness.closing import ClosingRecord
from harness.display import words
from harness.receipts import (
    Attestation,
    PreflightReceipt,
    ProvisionReceipt,
    PushReceipt,
    SelectReceipt,
    ValidateReceipt,
)
from harness.report.evidence import Evidence
from harness.report.table import Row, Table, absent, cell, row

CLOSING = "closing.json"
NO_CLOSING = "there is no closing record"


def cost(evidence: Evidence) -> Table:
    """The bound, line by line."""
    columns = ("line", "quantity", "unit price", "bound", "SKU", "price of")
    if evidence.closing is None:
        return absent("cost", "Cost", NO_CLOSING, columns)
    found = evidence.closing.resources
    rows = [
        row(
            line.what,
            (
                cell(line.quantity, f"{line.quantity} {line.unit}", source=CLOSING),
                cell(line.unit_price_usd, words.money(line.unit_price_usd), source=CLOSING),
                cell(line.bound_usd, words.money(line.bound_usd), source=CLOSING),
                cell(line.sku, source=CLOSING),
                cell(line.price_date, source=CLOSING),
            ),
        )
        for line in found.lines
    ]
    for header, amount in (
        ("allowance", found.allowance_usd),
        ("total bound", found.total_bound_usd),
        ("ceiling", found.ceiling_usd),
    ):
        blank = cell("", source=CLOSING)
        amount_cell = cell(amount, words.money(amount), source=CLOSING)
        rows.append(row(header, (blank, blank, amount_cell, blank, blank)))
    note = (
        found.note if "not an invoice" in found.note else f"A bound, not an invoice. {found.note}"
    )
    note += f" Fleet {found.fleet}, attempts: {found.attempts}, state: {found.state}."
    if len(found.studies) > 1:
        note += f" The fleet carried several runs: {', '.join(found.studies)}."
    return Table("cost", "Cost", columns, tuple(rows), note=note,
        words=frozenset({"SKU", "price of"}))  # fmt: skip


def hosts(evidence: Evidence) -> Table:
    """Every host's life as observed."""
    columns = ("host", "type", "launched", "ended", "lifetime")
    if evidence.closing is None:
        return absent("hosts", "Hosts", NO_CLOSING, columns)
    rows = tuple(
        row(
            host.host,
            (
                cell(host.type, source=CLOSING),
                cell(host.launched_utc, words.utc(host.launched_utc), source=CLOSING),
                cell("not observed", source=CLOSING)
                if host.ended_utc is None
                else cell(host.ended_utc, words.utc(host.ended_utc), source=CLOSING),
                cell("not observed", source=CLOSING)
                if host.seconds is None
                else cell(host.seconds, words.seconds(host.seconds), source=CLOSING),
            ),
        )
        for host in evidence.closing.resources.hosts
    )
    return Table("hosts", "Hosts", columns, rows, words=frozenset({"type"}))


def commitments(evidence: Evidence) -> Table:
    """What was fixed, by hash, and the commits that hold it."""
    prepared, results = evidence.prepared, evidence.results
    rows = [
        _hash("plan hash", evidence.plan_hash, "plan.json", "RFC 8785 over the file as written"),
        _hash("prepared identity", prepared.identity, "prepared.json", "over every prepared file"),
        _hash(
            "pushed source", prepared.source_sha256, "prepared.json", "trainer and on-host helper"
        ),
        _hash("trainer", prepared.trainer_sha256, "prepared.json"),
        _hash("requirements", prepared.requirements_sha256, "prepared.json"),
        _hash("tokenizer", prepared.tokenizer_sha256, "prepared.json"),
    ]
    select = evidence.receipt(SelectReceipt)
    selection = select.selection_sha256 if select else None
    meaning = "names every candidate; committed before any test case was scored"
    rows.append(_hash("selection file", selection, "receipt select", meaning))
    told = evidence.attestations
    rows += [
        _hash(c.what, c.commit, "commits.json", f"branch {c.branch}{_attested(told.get(c.what))}")
        for c in evidence.commits
    ]
    roots = {m.name: m.parameter_root for m in results.models}
    roots = roots or {a.name: a.parameter_root for a in results.arms}
    rows += [_hash(f"parameters of {name}", root, "results.json") for name, root in roots.items()]
    if evidence.closing is not None:
        archive = evidence.closing.archive
        where = f"uncompressed tar of {words.count(archive.bytes)} bytes at {archive.locator}"
        rows.append(_hash("evidence archive", archive.sha256, CLOSING, where))
    return Table("commitments", "Commitments", ("what", "hash"), tuple(rows),
        words=frozenset({"hash"}))  # fmt: skip


def _attested(told: Attestation | None) -> str:
    """What is said of signature and time stamp of a commitment."""
    signed = f"; signed by {told.key}" if told and told.key else ""
    if told is None or told.stamped_utc is None:
        return signed
    return f"{signed}; time-stamped {told.stamped_utc} by {told.authority_url}"


def _hash(header: str, value: str | None, source: str, note: str = "") -> Row:
    found = (
        cell("none", source=source)
        if value is None and source == "prepared.json"
        else cell(value, source=source)
    )
    return row(header, (found,), note=note)


def validation(evidence: Evidence) -> Table:
    """The second code path's checks."""
    columns = ("check", "items")
    receipt = evidence.receipt(ValidateReceipt)
    if receipt is None:
        return absent("validation", "Validation", "the stage validate did not run", columns)
    source = "receipt validate"
    rows = [
        row(c.check, (cell(c.count, words.count(c.count), source=source),)) for c in receipt.checks
    ]
    rows.append(
        row("disagreements", (cell(len(receipt.disagreements), source=source),),
            note=" ".join(receipt.disagreements))
    )  # fmt: skip
    return Table("validation", "Validation", columns, tuple(rows),
        note="Independent code that re-reads every prompt, answer and loss. It validates "
        "artifacts; it is not another inference.")  # fmt: skip


def preservation(evidence: Evidence) -> Table:
    """Readback, release and teardown."""
    columns = ("what", "observed")
    closing = evidence.closing
    if closing is None:
        return absent("preservation", "Preservation and teardown", NO_CLOSING, columns)
    lines = [*_readback(closing), ("released because", closing.release.basis, closing.release.why)]
    lines += [("host ended", sentence, "") for sentence in closing.ended]
    lines += [("left behind", name, "") for name in closing.residue]
    if not closing.residue:
        lines.append(("left behind", "nothing found", ""))
    lines += [("deadline", proof, "") for proof in closing.resources.deadlines]
    rows = tuple(row(head, (cell(text, source=CLOSING),), note=note) for head, text, note in lines)
    return Table("preservation", "Preservation and teardown", columns, rows,
        words=frozenset({"observed"}))  # fmt: skip


def _readback(closing: ClosingRecord) -> list[tuple[str, str, str]]:
    found = closing.preservation
    if found is None:
        return [("read back", words.NOT_RUN, "")]
    size = words.decimal_bytes(found.bytes)
    lines = [
        ("read back", f"{words.count(found.objects)} objects, {size}, all hashes compared",
         f"by process {found.reader_pid}, {found.reader}")
    ]  # fmt: skip
    lines += [("weights not kept", sentence, "") for sentence in found.not_kept or ()]
    lines += [("retention", found.retention, "")] if found.retention else []
    return lines + [("lost", sentence, "") for sentence in found.lost]


def preflight(evidence: Evidence) -> Table:
    """Every host was looked at before the first arm."""
    columns = ("host, check", "observed", "required", "result")
    receipt = evidence.receipt(PreflightReceipt)
    if receipt is None:
        return absent("preflight", "Preflight", "the stage preflight did not run", columns)
    source = "receipt preflight"
    rows = tuple(
        row(
            f"{line.host}, {line.check}",
            (
                cell(line.observed, source=source),
                cell(line.required, source=source),
                cell(line.ok, "pass" if line.ok else "fail", source=source,
                     state="pass" if line.ok else "fail"),
            ),
        )
        for line in receipt.lines
    )  # fmt: skip
    return Table("preflight", "Preflight", columns, rows, words=frozenset(columns))


def machines(evidence: Evidence) -> Table:
    """What the hosts are and what was installed on them."""
    columns = ("host", "processors", "memory", "GPUs", "driver", "Python", "environment")
    receipt = evidence.receipt(ProvisionReceipt)
    if receipt is None:
        return absent("machines", "Machines", "the stage provision did not run", columns)
    push = evidence.receipt(PushReceipt)
    kinds = {host.host: host.environment for host in push.hosts} if push else {}
    source = "receipt provision"
    rows = tuple(
        row(
            host.name,
            (
                cell(host.cpus, source=source),
                cell(host.memory_bytes, words.binary_bytes(host.memory_bytes), source=source),
                cell("; ".join(host.gpus) or "none", source=source),
                cell(host.driver or "none", source=source),
                cell(host.python, source=source),
                cell(kinds.get(host.name), source="receipt push"),
            ),
        )
        for host in receipt.hosts
    )
    return Table("machines", "Machines", columns, rows,
        words=frozenset({"GPUs", "driver", "Python", "environment"}))  # fmt: skip
