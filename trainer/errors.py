"""What can go wrong in ways that are the caller's to mend; `start.main` turns it into exits."""

from __future__ import annotations


class TrainerError(Exception):
    """A failed attempt: one sentence for standard error, exit status 1."""

    exit_status = 1


class RecipeError(TrainerError):
    """Arguments or a recipe that do not keep to the contract: exit status 2."""

    exit_status = 2
