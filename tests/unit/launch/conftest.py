"""A cloud in this process, and a project folder with a plan for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws
from moto.ssm.models import Parameter, ssm_backends

from harness.cloud.clients import Aws
from harness.plan import LoadedPlan, load_plan
from tests.toy_plan import write_plan
from tests.unit.launch.aws import ACCOUNT, PARAMETER, aws_plan


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[Aws]:
    for name, value in (
        ("AWS_ACCESS_KEY_ID", "testing"),
        ("AWS_SECRET_ACCESS_KEY", "testing"),
        ("AWS_CONFIG_FILE", "/dev/null"),
        ("AWS_SHARED_CREDENTIALS_FILE", "/dev/null"),
    ):
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    with mock_aws():
        made = boto3.Session(region_name="us-east-1")
        image = made.client("ec2").register_image(Name="Deep Learning Base", RootDeviceName="/x")
        publish(PARAMETER, image["ImageId"])
        yield Aws("us-east-1", session=made)


def publish(name: str, value: str) -> None:
    """A public parameter, which only AWS itself may write."""
    backend = ssm_backends[ACCOUNT]["us-east-1"]
    made: Any = Parameter
    backend._parameters[name] = [
        made(
            account_id=ACCOUNT, name=name, value=value, parameter_type="String",
            description="", allowed_pattern=None, keyid=None, last_modified_date=0.0, version=1,
            data_type="text",
        )
    ]  # fmt: skip


@pytest.fixture
def loaded(tmp_path: Path) -> LoadedPlan:
    path = write_plan(tmp_path, aws_plan())
    (tmp_path / "Pulumi.yaml").write_text("name: harness\nruntime: python\n")
    return load_plan(path)
