"""What a preparation gives back: the identity, the files and what a report needs to say of them."""

from __future__ import annotations

from harness.inputs.identity import PreparedFile
from harness.inputs.layout import is_operator_side
from harness.plan.kinds import CountOrZero, NotNegative, Sha256
from harness.strict import Model


class ArmTargets(Model):
    """What one arm trains on over its whole schedule, all workers together."""

    documents: CountOrZero
    """Draws: a document counts each time it is used."""
    tokens: CountOrZero
    targets: CountOrZero
    """Predicted positions, unweighted."""
    weighted_targets: NotNegative
    """Sum over draws of weight times predicted positions."""


class Skipped(Model):
    """Rows of a hub data set that were passed over while a role was filled."""

    repeated: CountOrZero
    too_long: CountOrZero


class PreparedInputs(Model):
    """The prepared folder in numbers."""

    identity: Sha256
    files: tuple[PreparedFile, ...]
    tokenizer_sha256: Sha256
    end_tokens: tuple[int, ...]
    """Ids that end an answer (the recipe of `evaluate` takes them)."""
    counts: dict[str, CountOrZero]
    """Documents or cases: train-tasks, train-replay, development, test, retention.NAME."""
    arms: dict[str, ArmTargets]
    """By arm."""
    longest: dict[str, CountOrZero]
    """Tokens of the longest document: train.CORPUS, development, test (prompts), retention.NAME."""
    damaged: CountOrZero
    """Task targets that the damaged corpus corrupts; 0 where none is declared."""
    exposure: dict[str, tuple[str, ...]]
    """First 16 hex digits of every id: train, replay, development, test, retention."""
    held_out_wordings: tuple[int, ...]
    replay_source: str | None = None
    """'generated', or repository, revision and file."""
    distinct_conversations: CountOrZero
    """Different replay conversations."""
    skipped: dict[str, Skipped]
    """By role or probe set that is filled from a hub data set."""
    notes: tuple[str, ...]
    """Sentences for the report's limits: declared re-use, replication, rows passed over."""

    @property
    def host_files(self) -> tuple[PreparedFile, ...]:
        """The files that hosts get."""
        return tuple(file for file in self.files if not is_operator_side(file.path))

    @property
    def operator_files(self) -> tuple[PreparedFile, ...]:
        """The files that stay here: answers and texts."""
        return tuple(file for file in self.files if is_operator_side(file.path))
