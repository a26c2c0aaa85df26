"""The words that start a process which outlives the login."""

from __future__ import annotations

from harness.onhost.unit import unit_command


def test_a_unit_runs_as_the_user_and_takes_only_known_variables() -> None:
    given = {
        "PATH": "/bin",
        "HARNESS_FLEET": "f",
        "AWS_SECRET_ACCESS_KEY": "x",
        "NCCL_DEBUG": "INFO",
    }
    words = unit_command("harness-f-host-0-train.pair.1", ["python3", "-m", "x"], given, 1000, 100)
    assert words[0] == "systemd-run" and words[-4:] == ["--", "python3", "-m", "x"]
    assert "--uid=1000" in words and "--gid=100" in words
    assert "--property=KillMode=process" in words, (
        "the end of the unit's first process kills no job"
    )
    kept = [each for each in words if each.startswith("--setenv=")]
    assert kept == ["--setenv=HARNESS_FLEET=f", "--setenv=NCCL_DEBUG=INFO", "--setenv=PATH=/bin"]


def test_a_name_cannot_bring_words_of_its_own() -> None:
    words = unit_command("a b;--uid=0/../x", ["true"], {}, 1, 1)
    assert "--unit=a-b---uid-0-..-x" in words
