"""When what was preserved is removed again: by a rule of the bucket, or never, at what cost.

Sources: Amazon S3 user guide, "Managing the lifecycle of objects" and "Lifecycle configuration
elements" (a Date is midnight UTC; PutBucketLifecycleConfiguration replaces every rule).
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from harness import money
from harness.clock import utc_text
from harness.errors import Refused
from harness.onhost import s3place
from harness.onhost.command import Fault
from harness.onhost.s3place import S3Place
from harness.prices import load_prices
from harness.receipts import Retention
from harness.store.protocol import Store
from trainer import contract

UPLOADS = "harness-incomplete-uploads"
UPLOAD_DAYS = 7
OLD_VERSIONS_DAYS = 1
NO_RULES = "NoSuchLifecycleConfiguration"


def retention_of(store: Store, *, days: int, size: int, now: datetime) -> Retention:
    """Put the rule that ends a bucket's retention and read it back, or say that it continues.

    `days` as the plan declares (0: until removed by hand), `size` in bytes. Never raises for a
    bucket that takes no rule: what was preserved is preserved, and the receipt says that it stays.
    """
    address: dict[str, Any] = contract.parse(store.address())
    if address["kind"] != "s3":
        return Retention(continues=True, why="a folder of the user's, which nothing bills")
    place = S3Place.parse(address)
    monthly = _monthly(place.region, size)
    if not days:
        return Retention(
            continues=True, why="the plan declares no end", usd_a_month=monthly, bytes=size
        )
    until = (now.astimezone(UTC) + timedelta(days=days)).replace(
        hour=0, minute=0, second=0, microsecond=0
    )
    try:
        found = put_end(s3place.make_client(place), place, until)
    except _refusals() as error:
        why = f"the bucket took no rule ({s3place.code_of(error) or type(error).__name__})"
        return Retention(continues=True, why=why, usd_a_month=monthly, bytes=size)
    return Retention(
        continues=False, ends_utc=utc_text(found), rule=rule_id(place),
        usd_a_month=monthly, bytes=size,
    )  # fmt: skip


def _refusals() -> tuple[type[Exception], ...]:
    return (Fault, *s3place.request_errors())


def rule_id(place: S3Place) -> str:
    """The rule's name: one a prefix."""
    return f"harness-retention-{place.prefix}"[:255]


def put_end(client: Any, place: S3Place, until: datetime) -> datetime:
    """Objects below the prefix, with their older versions, are removed from `until` on; returns
    the time as the bucket tells it afterwards.

    Every other rule stays; an end of this prefix that is later (another study's) stays too.
    """
    rules, mine = _rules(client, place), rule_id(place)
    others = [rule for rule in rules if rule.get("ID") != mine]
    for rule in rules:
        if rule.get("ID") == mine and "Date" in rule.get("Expiration", {}):
            until = max(until, rule["Expiration"]["Date"])
    if not any("AbortIncompleteMultipartUpload" in rule for rule in others):
        others.append(
            {
                "ID": UPLOADS, "Status": "Enabled", "Filter": {"Prefix": ""},
                "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": UPLOAD_DAYS},
            }
        )  # fmt: skip
    rule = {
        "ID": mine, "Status": "Enabled", "Filter": {"Prefix": place.base},
        "Expiration": {"Date": until},
        "NoncurrentVersionExpiration": {"NoncurrentDays": OLD_VERSIONS_DAYS},
    }  # fmt: skip
    client.put_bucket_lifecycle_configuration(
        **place.owned(), LifecycleConfiguration={"Rules": [*others, rule]}
    )
    for told in _rules(client, place):
        if told.get("ID") == mine and told["Status"] == "Enabled":
            found: datetime = told["Expiration"]["Date"]
            return found.astimezone(UTC)
    raise Fault("the bucket does not show the rule that it took.")


def _rules(client: Any, place: S3Place) -> list[dict[str, Any]]:
    try:
        answer = client.get_bucket_lifecycle_configuration(**place.owned())
    except s3place.request_errors() as error:
        if s3place.code_of(error) == NO_RULES:
            return []
        raise
    return list(answer["Rules"])


def _monthly(region: str, size: int) -> str | None:
    """What the bytes cost a month at AWS's price; None where it is not known."""
    try:
        price = load_prices(region).price("s3/storage")
    except Refused:
        return None
    return money.price_of_bytes(size, price.usd)
