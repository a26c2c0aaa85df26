"""What stops and what goes on to the next placement."""

from __future__ import annotations

import pytest

from harness.launch.refusals import essence, kind_of


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("api error InsufficientInstanceCapacity: We currently do not have sufficient", "capacity"),
        ("(Unsupported) when calling the RunInstances operation: type is not supp", "capacity"),
        ("api error UnauthorizedOperation: You are not authorized", "configuration"),
        ("VcpuLimitExceeded: You have requested more vCPU capacity than", "configuration"),
        ("(InvalidParameterValue) when calling", "configuration"),
        ("unexpected state 'terminated': Client.InternalError", "other"),
        ("connection reset", "other"),
        # both: a denial is never retried elsewhere
        ("InsufficientInstanceCapacity ... UnauthorizedOperation", "configuration"),
        ("UnsupportedOperation: something else", "other"),
    ],
)
def test_kind(said: str, kind: str) -> None:
    assert kind_of(said) == kind


def test_the_essence_is_the_line_that_names_the_reason() -> None:
    said = "Updating\nerror: update failed\n  api error VcpuLimitExceeded: too many.\nResources: 1"
    assert essence(said) == "api error VcpuLimitExceeded: too many"
