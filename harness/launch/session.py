"""The operator's own AWS credentials, few retries."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from boto3.session import Session


def session_for(region: str | None) -> Session:
    """A session in the plan's region; profile, endpoint and credentials as boto3 finds them."""
    import boto3

    return boto3.Session(region_name=region)
