"""Receipts: what each stage observed. One model a stage, and the pieces they share.

A receipt carries the hashes of what it read (`inputs`) and wrote; the pipeline runs a stage again
only when those differ.
"""

from __future__ import annotations

from harness.receipts.base import (
    Attempt,
    Cause,
    Incomplete,
    Line,
    RankReceipt,
    Receipt,
    StageName,
    Timers,
    Traffic,
    Unfinished,
)
from harness.receipts.before import (
    Allowance,
    CommitReceipt,
    PreflightReceipt,
    PrepareReceipt,
    ProbeReceipt,
    ProvisionReceipt,
    PushedHost,
    PushReceipt,
    Trial,
)
from harness.receipts.kept import (
    PreserveReceipt,
    Readback,
    ReleaseReceipt,
    ReportReceipt,
    SealReceipt,
    TerminateReceipt,
)
from harness.receipts.measured import (
    Agreement,
    ArmRecord,
    Candidate,
    Decided,
    DecideReceipt,
    Distance,
    EvaluateReceipt,
    ModelScores,
    RecheckReceipt,
    SelectReceipt,
    TrainReceipt,
    ValidateReceipt,
)
from harness.receipts.served import (
    Fate,
    PhaseRecord,
    ReplicaRecord,
    RequestAttempt,
    ServeReceipt,
)

__all__ = [
    "RECEIPTS",
    "Agreement",
    "Allowance",
    "ArmRecord",
    "Attempt",
    "Candidate",
    "Cause",
    "CommitReceipt",
    "DecideReceipt",
    "Decided",
    "Distance",
    "EvaluateReceipt",
    "Fate",
    "Incomplete",
    "Line",
    "ModelScores",
    "PhaseRecord",
    "PreflightReceipt",
    "PrepareReceipt",
    "PreserveReceipt",
    "ProbeReceipt",
    "ProvisionReceipt",
    "PushReceipt",
    "PushedHost",
    "RankReceipt",
    "Readback",
    "Receipt",
    "RecheckReceipt",
    "ReleaseReceipt",
    "ReplicaRecord",
    "ReportReceipt",
    "RequestAttempt",
    "SealReceipt",
    "SelectReceipt",
    "ServeReceipt",
    "StageName",
    "TerminateReceipt",
    "Timers",
    "Traffic",
    "TrainReceipt",
    "Trial",
    "Unfinished",
    "ValidateReceipt",
]

RECEIPTS: dict[StageName, type[Receipt]] = {
    "prepare": PrepareReceipt,
    "commit": CommitReceipt,
    "provision": ProvisionReceipt,
    "push": PushReceipt,
    "preflight": PreflightReceipt,
    "probe": ProbeReceipt,
    "train": TrainReceipt,
    "recheck": RecheckReceipt,
    "select": SelectReceipt,
    "evaluate": EvaluateReceipt,
    "serve": ServeReceipt,
    "validate": ValidateReceipt,
    "decide": DecideReceipt,
    "seal": SealReceipt,
    "preserve": PreserveReceipt,
    "release": ReleaseReceipt,
    "terminate": TerminateReceipt,
    "report": ReportReceipt,
}
"""Every stage in order, with the model of its receipt."""
