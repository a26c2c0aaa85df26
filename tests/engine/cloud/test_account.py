"""`harness check --account`: nothing is made; what is denied or too small is said beforehand."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from harness.cli import check as check
from harness.cli.app import app
from harness.cloud.account import (
    Account,
    Permission,
    check_account,
    operator_policy,
    require_able,
)
from harness.errors import BadInput, Refused
from harness.plan import load_plan
from tests.engine.cloud.waiting import aws_of
from tests.engine.moto.server import MotoCloud

PLAN = Path(__file__).parents[3] / "plans" / "batched-learning" / "plan.json"
HOSTS = load_plan(PLAN).plan.hosts.aws
assert HOSTS is not None
ENDS = (
    "ec2:TerminateInstances", "ec2:DeleteVolume", "ec2:DeleteVpc", "ec2:DeleteSecurityGroup",
    "ec2:ModifyInstanceAttribute",
)  # fmt: skip


def look(cloud: MotoCloud) -> Account:
    aws, _ = aws_of(cloud)
    assert HOSTS is not None
    return check_account(aws, HOSTS, 3600)


def verdicts(found: Account) -> dict[str, str]:
    return {each.action: each.verdict for each in found.permissions}


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["check", str(PLAN), "--account", *arguments])


def test_all_is_allowed_and_nothing_is_made(cloud: MotoCloud) -> None:
    found = look(cloud)
    assert set(verdicts(found).values()) == {"allowed"}, found.permissions
    require_able(found)
    assert found.credentials.account == "123456789012"
    assert not cloud.client("ec2").describe_instances()["Reservations"]
    made = {each.action for each in cloud.calls() if each.action.startswith("Create")
            and each.status == 200}  # fmt: skip
    assert not made


@pytest.mark.parametrize(
    ("service", "call", "action"),
    [
        ("ec2", "RunInstances", "ec2:RunInstances"),
        ("ec2", "DescribeNetworkInterfaces", "ec2:DescribeNetworkInterfaces"),
        ("scheduler", "GET /schedule-groups", "scheduler:ListScheduleGroups"),
        ("iam", "ListRoles", "iam:ListRoles"),
    ],
)
def test_what_is_denied_is_named_with_the_policy_to_attach(
    cloud: MotoCloud, service: str, call: str, action: str
) -> None:
    cloud.on("Denied", service=service, action=call)
    found = look(cloud)
    assert verdicts(found)[action] == "denied"
    with pytest.raises(Refused, match=action) as caught:
        require_able(found)
    assert "operator_policy.json" in caught.value.next_command


def test_the_simulator_answers_for_what_has_no_dry_run(cloud: MotoCloud) -> None:
    cloud.on("Denied", service="iam", action="SimulatePrincipalPolicy")
    found = look(cloud)
    assert verdicts(found)["ec2:TerminateInstances"] == "not decided"
    assert any("not decided" in note for note in found.notes)
    cloud.off("Denied")
    cloud.on("Simulator", denied=("iam:PassRole",))
    found = look(cloud)
    assert (verdicts(found)["iam:PassRole"], verdicts(found)["s3:PutObject"]) == (
        "denied",
        "allowed",
    )


def test_a_quota_that_is_too_small_is_refused_with_the_request_to_make(cloud: MotoCloud) -> None:
    cloud.on("Quotas", vcpus=0)
    found = look(cloud)
    assert found.quota.vcpus == 0 and found.quota.needed is not None
    with pytest.raises(Refused, match="quota of 0 vCPUs") as caught:
        require_able(found.model_copy(update={"permissions": ()}))
    assert "--quota-code L-DB2E81BA" in caught.value.next_command
    assert f"--desired-value {found.quota.needed}" in caught.value.next_command


def test_a_quota_that_is_not_known_is_said_and_no_refusal(cloud: MotoCloud) -> None:
    cloud.on("Denied", service="servicequotas", action="GetServiceQuota")
    found = look(cloud)
    assert found.quota.vcpus is None and "AccessDenied" in found.quota.note
    require_able(found)


def test_credentials_that_end_before_the_deadline_are_said(cloud: MotoCloud) -> None:
    found = look(cloud)
    assert found.credentials.seconds_left is None
    assert found.credentials.kind.startswith("long-lived key")
    short = found.credentials.model_copy(
        update={"seconds_left": timedelta(minutes=30).total_seconds()}
    )
    notes = found.model_copy(update={"credentials": short}).notes
    assert any("end in 0.5 h, before a deadline of 1.0 h" in note for note in notes)


def test_the_command_prints_a_table_of_80_columns(cloud: MotoCloud) -> None:
    result = run()
    assert result.exit_code == 0, result.output
    assert "ec2:RunInstances" in result.output and "vCPU quota for G and VT" in result.output
    assert max(map(len, result.output.splitlines())) <= 80
    assert json.loads(run("--json").stdout)["account"]["region"] == "us-east-1"


def test_denied_is_exit_3_and_no_credentials_exit_2(
    cloud: MotoCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloud.on("Denied", action="RunInstances")
    assert run().exit_code == 3
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    result = run()
    assert result.exit_code == 2 and "no usable AWS credentials" in result.output
    assert BadInput.exit_code == 2


class TestThePolicy:
    def test_it_has_the_form_of_a_policy_and_fits_iams_limit(self) -> None:
        policy = operator_policy()
        assert policy["Version"] == "2012-10-17"
        for statement in policy["Statement"]:
            assert set(statement) <= {"Sid", "Effect", "Action", "Resource", "Condition"}
            assert statement["Effect"] == "Allow" and statement["Sid"].isalnum()
        assert len(json.dumps(policy, separators=(",", ":"))) <= 6144  # of a managed policy

    def test_what_ends_or_changes_things_is_bound_to_the_fleets_tag(self) -> None:
        for statement in operator_policy()["Statement"]:
            actions = statement["Action"]
            for action in [actions] if isinstance(actions, str) else actions:
                if action in ENDS:
                    tagged = {"Null": {"aws:ResourceTag/HarnessFleet": "false"}}
                    assert statement["Condition"] == tagged
                if action == "iam:PassRole":
                    assert statement["Resource"] == "arn:aws:iam::*:role/harness/*"

    def test_every_action_that_is_checked_is_in_it(self, cloud: MotoCloud) -> None:
        allowed: set[str] = set()
        for statement in operator_policy()["Statement"]:
            actions = statement["Action"]
            allowed |= {actions} if isinstance(actions, str) else set(actions)

        def covered(each: Permission) -> bool:
            return each.action in allowed or (
                each.action.startswith("ec2:Describe") and "ec2:Describe*" in allowed
            )

        assert [each.action for each in look(cloud).permissions if not covered(each)] == []
