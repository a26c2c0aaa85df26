"""The candidate of an earlier study that some arms start from."""

from __future__ import annotations

from typing import Literal

from harness.plan.kinds import Count, Name, Sha256, Text
from harness.strict import Model

PARENT = "parent"
"""Its name among the models that are scored and that decisions compare."""

Start = Literal["seed", "parent"]


class Parent(Model):
    """One candidate of an earlier study, by what it is and by how it is made again."""

    study: Name
    """Name of the earlier plan."""
    run: Text
    """The run whose record tells of the candidate."""
    candidate: Name
    """The arm of the earlier plan."""
    parameter_root: Sha256
    sha256: Sha256
    """Hash of its model.safetensors: the object's name in a store."""
    bytes: Count
    """Size of that file."""
    plan: Text
    """The earlier plan.json, relative to this plan's file. Running it makes the candidate again;
    the tasks of the first cohort are dealt from it."""
    plan_hash: Sha256
    """RFC 8785 hash of that file."""
    folder: Text | None = None
    """Where model.safetensors is looked for when the store does not have it, relative to this
    plan's file; absent: in the store only."""
