"""What a host is told at boot: cloud-init's form, its size, the order, and no secret."""

from __future__ import annotations

import email
from email.message import Message
from pathlib import Path

import pytest

from harness.errors import BadInput
from infra import user_data
from tests.unit.infra.fleet import admitted
from tests.unit.infra.guest import Guest

LONGEST = admitted(fleet="f" * 63, prefix="p" * 200, bucket="b" * 63)


def parts(text: str) -> list[tuple[str, str]]:
    message = email.message_from_string(text)
    assert message.is_multipart()
    found = []
    for part in message.get_payload():
        assert isinstance(part, Message)
        found.append((part.get_content_type(), str(part.get_payload())))
    return found


def test_arming_is_the_first_part_and_runs_before_anything_else() -> None:
    kinds = parts(user_data.user_data(admitted(), 0))
    assert [kind for kind, _ in kinds] == [
        "text/cloud-boothook",
        "text/cloud-config",
        "text/x-shellscript",
    ]
    boothook, config, script = (text for _, text in kinds)
    assert boothook.startswith("#cloud-boothook\n#!/bin/sh\n")
    assert config.startswith("#cloud-config\n")
    assert script.startswith("#!/bin/sh\n")
    for words in ("apt-get", "apt-mark", "dpkg", "pip "):
        assert words not in boothook
    assert "apt-mark hold" in script
    assert "systemctl mask" in script


def test_it_fits_with_the_longest_names_and_is_refused_beyond() -> None:
    assert len(user_data.user_data(LONGEST, 15)) < user_data.LIMIT_BYTES
    with pytest.raises(BadInput, match="longer than 16384"):
        user_data.user_data(admitted(prefix="p" * 4000), 0)


def test_the_same_fleet_and_slot_give_the_same_bytes() -> None:
    assert user_data.user_data(admitted(), 1) == user_data.user_data(admitted(), 1)
    assert user_data.user_data(admitted(), 1) != user_data.user_data(admitted(), 0)


@pytest.fixture
def guest(tmp_path: Path) -> Guest:
    return Guest(tmp_path)


OFF = ["systemctl poweroff", "sleep 120", "systemctl poweroff --force", "sleep 60"]
OFF += ["systemctl poweroff --force --force"]


def test_arming_writes_the_files_then_enables_and_starts_the_units(guest: Guest) -> None:
    calls = guest.run(user_data.arming(admitted(), 0))
    assert calls == [
        "systemctl daemon-reload",
        "systemctl enable harness-guard.timer harness-acknowledge.service",
        "systemctl start --no-block harness-guard.timer harness-guard.service "
        "harness-acknowledge.service",
    ]
    timer = (guest.root / "etc/systemd/system/harness-guard.timer").read_text()
    assert "OnCalendar=2027-01-01 00:00:01 UTC\n" in timer
    assert "Persistent=true\n" in timer


def test_a_host_that_cannot_be_armed_does_not_stay_up(guest: Guest) -> None:
    guest.stub("systemctl", f'echo "systemctl $*" >> "{guest.said}"; [ "$1" != enable ]')
    assert guest.run(user_data.arming(admitted(), 0))[-1] == "systemctl poweroff"


def test_the_guard_ends_a_host_that_nobody_acknowledged(guest: Guest) -> None:
    guest.armed()
    early, late = "2026-12-31T12:00:00", "2026-12-31T12:00:00"
    assert guest.at(early, up_s=599, acknowledged=False) == []
    assert guest.at(late, up_s=600, acknowledged=False) == OFF
    assert guest.at(late, up_s=7200, acknowledged=True) == []


def test_the_guard_ends_a_host_at_its_deadline_also_when_it_boots_after_it(guest: Guest) -> None:
    guest.armed()
    assert guest.at("2027-01-01T00:00:00", up_s=9000, acknowledged=True) == []
    assert guest.at("2027-01-01T00:00:01", up_s=9000, acknowledged=True) == OFF
    assert guest.at("2027-03-01T00:00:00", up_s=5, acknowledged=True) == OFF


def test_a_failing_poweroff_is_followed_by_others(guest: Guest) -> None:
    guest.armed()
    guest.stub("systemctl", f'echo "systemctl $*" >> "{guest.said}"; exit 1')
    calls = guest.at("2027-01-01T00:00:01", up_s=9000, acknowledged=True)
    assert calls[:2] == ["systemctl poweroff", "shutdown -P now"]
    assert calls[2:] == OFF[1:]
