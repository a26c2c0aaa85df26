"""One S3 server for these tests; every test has a bucket of its own."""

from __future__ import annotations

import os
import secrets
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.onhost.s3objects import S3Objects
from tests.unit.store.bucket_server import BucketServer


@pytest.fixture(scope="session")
def running_server() -> Iterator[BucketServer]:
    server = BucketServer()
    yield server
    server.stop()


@pytest.fixture
def server(
    running_server: BucketServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[BucketServer]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test-only-value")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    running_server.rules.clear()
    running_server.seen.clear()
    yield running_server
    running_server.rules.clear()


@pytest.fixture
def objects(server: BucketServer) -> S3Objects:
    return server.make(f"bucket-{secrets.token_hex(4)}")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """An empty disk of one mebibyte. In CI it must be there."""
    small = tmp_path / "small"
    small.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(small)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode:
        assert "CI" not in os.environ, "CI must be able to mount a small disk"
        pytest.skip("this computer lets nobody mount")
    yield small
    subprocess.run(["umount", str(small)], check=True)
