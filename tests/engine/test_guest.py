"""A host's own files: understood by systemd, and at home in a store."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.fleet import places
from infra import policies
from tests.engine.metadata import InstanceMetadata
from tests.engine.moto.server import MotoCloud
from tests.unit.infra.fleet import admitted
from tests.unit.infra.guest import Guest

FLEET = admitted()
ID = "i-0123456789abcdef0"


@pytest.fixture
def guest(tmp_path: Path) -> Guest:
    return Guest(tmp_path).armed()


@pytest.fixture
def metadata() -> Iterator[InstanceMetadata]:
    with InstanceMetadata(ID) as served:
        yield served


def records(
    guest: Guest, cloud: MotoCloud, metadata: InstanceMetadata, verb: str, wait_s: float = 60
) -> subprocess.CompletedProcess[str]:
    """The real program, as systemd would run it."""
    environment = {
        "PATH": guest.path,
        "HARNESS_ROOT": str(guest.root),
        "HARNESS_IMDS": metadata.address,
        "HARNESS_S3": cloud.endpoint,
        "HARNESS_POLL_S": "0.05",
    }
    program = guest.root / "usr/local/sbin/harness-records"
    return subprocess.run(
        ["python3", program, verb],
        env=environment,
        capture_output=True,
        text=True,
        timeout=wait_s,
        check=False,
    )


def made(cloud: MotoCloud) -> None:
    cloud.client("s3").create_bucket(Bucket=FLEET.bucket)


def published(cloud: MotoCloud, key: str) -> dict[str, object]:
    body = cloud.client("s3").get_object(Bucket=FLEET.bucket, Key=key)["Body"].read()
    return dict(json.loads(body))


def test_host_keys_are_published_once_and_never_replaced(
    guest: Guest, cloud: MotoCloud, metadata: InstanceMetadata
) -> None:
    made(cloud)
    keys = guest.root / "etc/ssh"
    keys.mkdir(parents=True)
    (keys / "ssh_host_ed25519_key.pub").write_text("ssh-ed25519 AAAAfirst root@host\n")
    (keys / "ssh_host_ed25519_key").write_text("PRIVATE")
    done = records(guest, cloud, metadata, "keys")
    assert done.returncode == 0, done.stderr
    key = places.host_keys(FLEET, 0)
    first = published(cloud, key)
    assert first["keys"] == ["ssh-ed25519 AAAAfirst"]
    assert (first["fleet"], first["slot"], first["instance_id"]) == ("pair-1", 0, ID)

    (keys / "ssh_host_ed25519_key.pub").write_text("ssh-ed25519 AAAAsecond\n")
    assert records(guest, cloud, metadata, "keys").returncode == 0
    metadata.instance_id = "i-another"
    refused = records(guest, cloud, metadata, "keys")
    assert refused.returncode != 0
    assert f"was published by {ID}" in refused.stderr
    assert published(cloud, key) == first


def test_the_ready_marker_says_what_systemd_says(
    guest: Guest, cloud: MotoCloud, metadata: InstanceMetadata
) -> None:
    made(cloud)
    guest.stub("systemctl", 'case "$1" in is-enabled) echo enabled;; is-active) echo active;; esac')
    done = records(guest, cloud, metadata, "ready")
    assert done.returncode == 0, done.stderr
    marker = published(cloud, places.ready(FLEET, 0))
    assert (marker["guard_enabled"], marker["guard_active"]) == ("enabled", "active")
    assert marker["deadline_utc"] == FLEET.deadline_utc


def test_only_this_instances_own_acknowledgement_counts(
    guest: Guest, cloud: MotoCloud, metadata: InstanceMetadata
) -> None:
    made(cloud)
    s3, key = cloud.client("s3"), places.acknowledged(FLEET, 0)
    mark = guest.root / "run/harness/acknowledged"
    s3.put_object(
        Bucket=FLEET.bucket, Key=key, Body=policies.acknowledgement(FLEET, 0, "i-other").encode()
    )
    with pytest.raises(subprocess.TimeoutExpired):
        records(guest, cloud, metadata, "acknowledge", wait_s=3)
    assert not mark.exists()
    s3.put_object(
        Bucket=FLEET.bucket, Key=key, Body=policies.acknowledgement(FLEET, 0, ID).encode()
    )
    done = records(guest, cloud, metadata, "acknowledge")
    assert done.returncode == 0, done.stderr
    assert mark.read_text() == "pair-1/host-0\n"


def test_the_units_are_what_systemd_understands(guest: Guest) -> None:
    """`systemd-analyze verify`, and when the timer elapses by systemd's own calendar."""
    analyze = shutil.which("systemd-analyze")
    assert analyze, "systemd-analyze is missing: apt-get install systemd"
    units = guest.root / "etc/systemd/system"
    for path in units.iterdir():
        # verify wants the programs in place: the same ones, under the test's root.
        text = path.read_text().replace("/usr/local/sbin", str(guest.root / "usr/local/sbin"))
        path.write_text(text)
    done = subprocess.run(
        [analyze, "verify", *sorted(map(str, units.iterdir()))],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    told = [line for line in done.stderr.splitlines() if "harness-" in line]
    assert (done.returncode, told) == (0, []), done.stderr
    timer = (units / "harness-guard.timer").read_text()
    absolute = timer.split("OnCalendar=")[1].splitlines()[0]
    calendar = subprocess.run(
        [analyze, "calendar", "--base-time=2026-12-31", absolute],
        env={"TZ": "UTC", "LC_ALL": "C"},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    ).stdout
    assert "Next elapse: Fri 2027-01-01 00:00:01 UTC" in calendar
