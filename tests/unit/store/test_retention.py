"""Retention ends by the bucket's own rule, beside everybody else's, or is said to continue."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from harness.retention import retention_of, rule_id
from harness.store.folder import FolderStore
from harness.store.s3 import S3Store
from tests.unit.store.bucket_server import BucketServer, refuse

NOW = datetime(2026, 11, 30, 9, 30, tzinfo=UTC)
GB = 10**9


@pytest.fixture(scope="module")
def server() -> Iterator[BucketServer]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", "test")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "test-only-value")
        running = BucketServer()
        yield running
        running.stop()


def rules(store: S3Store) -> dict[str, Any]:
    client, bucket = store._objects.client, store.place.bucket
    answer = client.get_bucket_lifecycle_configuration(Bucket=bucket)
    return {rule["ID"]: rule for rule in answer["Rules"]}


def test_the_rule_is_put_beside_others_and_read_back(server: BucketServer) -> None:
    store = S3Store(server.make("with-rules").place)
    store._objects.client.put_bucket_lifecycle_configuration(
        Bucket="with-rules",
        LifecycleConfiguration={"Rules": [
            {"ID": "theirs", "Status": "Enabled", "Filter": {"Prefix": "theirs/"},
             "Expiration": {"Days": 5}}]},
    )  # fmt: skip
    found = retention_of(store, days=30, size=2 * GB, now=NOW)
    assert not found.continues
    assert found.ends_utc == "2026-12-30T00:00:00.000000Z"
    told = rules(store)
    assert told["theirs"]["Expiration"] == {"Days": 5}
    mine = told[rule_id(store.place)]
    assert mine["Filter"]["Prefix"] == "study/objects/"
    assert mine["Expiration"]["Date"] == datetime(2026, 12, 30, tzinfo=UTC)
    assert mine["NoncurrentVersionExpiration"]["NoncurrentDays"] == 1
    uploads = told["harness-incomplete-uploads"]["AbortIncompleteMultipartUpload"]
    assert uploads == {"DaysAfterInitiation": 7}
    assert "ends 2026-12-30" in found.sentence() and "$0.046 a month" in found.sentence()


def test_a_later_end_of_the_same_prefix_stays(server: BucketServer) -> None:
    store = S3Store(server.make("twice").place)
    retention_of(store, days=60, size=GB, now=NOW)
    again = retention_of(store, days=30, size=GB, now=NOW)
    assert again.ends_utc == "2027-01-29T00:00:00.000000Z"
    assert len(rules(store)) == 2


def test_without_an_end_it_continues_and_what_that_costs_is_said(server: BucketServer) -> None:
    store = S3Store(server.make("endless").place)
    found = retention_of(store, days=0, size=10 * GB, now=NOW)
    assert found.continues and found.usd_a_month == "0.23"
    assert found.sentence() == (
        "continues: the plan declares no end; 10000000000 bytes, $0.23 a month"
    )


def test_a_bucket_that_takes_no_rule_keeps_what_it_has(server: BucketServer) -> None:
    store = S3Store(server.make("refusing").place)
    server.rules.append(refuse(403, "AccessDenied", method="PUT", query="lifecycle"))
    try:
        found = retention_of(store, days=30, size=GB, now=NOW)
    finally:
        server.rules.clear()
    assert found.continues and "AccessDenied" in found.why


def test_a_folder_is_billed_by_nobody(tmp_path: Path) -> None:
    found = retention_of(FolderStore(tmp_path), days=30, size=GB, now=NOW)
    assert found.continues and found.usd_a_month is None
