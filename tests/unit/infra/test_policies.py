"""IAM documents and schedule bodies, written out: nothing else notices a mistake before AWS."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from infra import policies
from tests.unit.infra.fleet import admitted


def test_instances_take_the_host_role() -> None:
    assert json.loads(policies.host_trust().text()) == {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Effect": "Allow",
                "Principal": {"Service": "ec2.amazonaws.com"},
                "Action": "sts:AssumeRole",
            }
        ],
    }


def test_a_host_reaches_its_prefix_and_lists_it_and_nothing_else() -> None:
    folders = ["studies/pair/objects/*", "studies/pair/fleets/pair-1/*"]
    assert json.loads(policies.host_policy(admitted()).text()) == {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Effect": "Allow",
                "Action": [
                    "s3:AbortMultipartUpload",
                    "s3:GetObject",
                    "s3:GetObjectVersion",
                    "s3:ListMultipartUploadParts",
                    "s3:PutObject",
                ],
                "Resource": [f"arn:aws:s3:::harness-bucket/{folder}" for folder in folders],
            },
            {
                "Effect": "Allow",
                "Action": ["s3:ListBucket"],
                "Resource": ["arn:aws:s3:::harness-bucket"],
                "Condition": {"StringLike": {"s3:prefix": folders}},
            },
        ],
    }


def test_the_scheduler_takes_the_deadlines_role_for_this_account_and_group_only() -> None:
    (statement,) = json.loads(policies.deadline_trust(admitted()).text())["Statement"]
    assert statement == {
        "Effect": "Allow",
        "Principal": {"Service": "scheduler.amazonaws.com"},
        "Action": "sts:AssumeRole",
        "Condition": {
            "StringEquals": {
                "aws:SourceAccount": "123456789012",
                "aws:SourceArn": "arn:aws:scheduler:us-east-1:123456789012:schedule-group/pair-1",
            }
        },
    }


def test_the_deadline_may_end_this_fleets_hosts_only() -> None:
    (statement,) = json.loads(policies.deadline_policy(admitted()).text())["Statement"]
    assert statement == {
        "Effect": "Allow",
        "Action": ["ec2:TerminateInstances"],
        "Resource": ["arn:aws:ec2:us-east-1:123456789012:instance/*"],
        "Condition": {"StringEquals": {"aws:ResourceTag/HarnessFleet": "pair-1"}},
    }


@pytest.mark.parametrize(
    "wrong",
    [
        {"principle": {"service": "ec2.amazonaws.com"}},
        {"principal": {"service": "ec2.amazonaws.co"}},
        {"principal": {"service": "ec2.amazonaws.com"}, "action": "sts:AssumeRoles"},
        {"principal": {"service": "ec2.amazonaws.com"}, "effect": "allow"},
    ],
)
def test_a_misspelled_element_is_refused_here(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        policies.TrustStatement.model_validate(wrong)


def test_a_schedule_is_at_a_whole_second_of_utc() -> None:
    assert policies.schedule_expression(admitted()) == "at(2027-01-01T00:00:00)"
    assert json.loads(policies.schedule_input("i-0")) == {"InstanceIds": ["i-0"]}


@given(st.from_regex(r"\A[a-z0-9][a-z0-9-]{2,62}\Z"))
def test_names_of_any_fleet_keep_to_awss_rules(fleet: str) -> None:
    known = admitted(fleet=fleet)
    assert len(policies.schedule_group(known)) <= 64
    assert len(policies.role_path(known)) <= 512
    policies.host_policy(known)
    policies.deadline_trust(known)
