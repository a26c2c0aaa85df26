"""A Pulumi that nobody told where its state is: the sentence names the command that does."""

from __future__ import annotations

from typing import Any

import pytest
from pulumi.automation import CommandError, CommandResult

from harness.errors import Refused
from harness.launch.engine import _asked


@pytest.mark.parametrize(
    ("said", "command"),
    [
        ("error: PULUMI_ACCESS_TOKEN must be set for login", "pulumi login --local"),
        ("error: the passphrase is wrong", "pulumi stack ls"),
    ],
)
def test_the_next_command_fits_what_pulumi_says(said: str, command: str) -> None:
    def act() -> Any:
        raise CommandError(CommandResult(stdout="", stderr=said, code=255))

    with pytest.raises(Refused, match="cannot be opened") as refused:
        _asked(act)
    assert refused.value.next_command == command
