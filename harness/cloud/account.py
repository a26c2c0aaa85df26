"""`harness check --account`: what the credentials may do, the quota, how long they live.

Nothing is made: EC2 is asked with DryRun, IAM simulates the rest, lists are read. The policy that
allows just this is `operator_policy.json` beside this file.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from botocore.exceptions import BotoCoreError, ClientError

from harness.clock import utc_text
from harness.cloud.clients import Aws, asking, code_of, words_of
from harness.errors import Refused
from harness.plan.hosts import AwsHosts
from harness.strict import Model

POLICY = Path(__file__).parent / "operator_policy.json"
G_AND_VT, P = "L-DB2E81BA", "L-417A185B"
QUOTAS = {"g": (G_AND_VT, "G and VT"), "v": (G_AND_VT, "G and VT"), "p": (P, "P")}
"""By first letter of the type: vCPUs of running On-Demand instances (EC2 'On-Demand quotas')."""
IMAGE = "/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-x86_64"
"""Any image will do for a dry run."""
DENIED = ("UnauthorizedOperation", "AccessDenied", "AccessDeniedException")
SIMULATED = (
    "ec2:TerminateInstances", "ec2:DeleteVolume", "ec2:AuthorizeSecurityGroupIngress",
    "iam:CreateRole", "iam:PutRolePolicy", "iam:CreateInstanceProfile", "iam:PassRole",
    "scheduler:CreateScheduleGroup", "scheduler:CreateSchedule", "s3:CreateBucket", "s3:PutObject",
    "s3:GetObject",
)  # fmt: skip


class Permission(Model):
    """One thing that a study needs to do."""

    action: str
    verdict: Literal["allowed", "denied", "not decided"]
    how: str
    """How it was asked, or why it could not be."""


class Quota(Model):
    """vCPUs that may run at once, beside what the plan's dearest placement needs."""

    code: str
    name: str
    vcpus: float | None = None
    """None: AWS did not say."""
    needed: int | None = None
    note: str = ""

    @property
    def enough(self) -> bool | None:
        """None when it is not known."""
        if self.vcpus is None or self.needed is None:
            return None
        return self.vcpus >= self.needed


class Credentials(Model):
    """Whose they are and how long they live."""

    account: str
    arn: str
    kind: str
    """'long-lived key', 'temporary', and where they came from."""
    expires_utc: str | None = None
    seconds_left: float | None = None


class Account(Model):
    """The whole check."""

    region: str
    credentials: Credentials
    permissions: tuple[Permission, ...]
    quota: Quota
    deadline_s: int

    @property
    def notes(self) -> tuple[str, ...]:
        """What a person should know, in sentences."""
        found = []
        left = self.credentials.seconds_left
        if left is not None and left < self.deadline_s:
            found.append(
                f"these credentials end in {left / 3600:.1f} h, before a deadline of "
                f"{self.deadline_s / 3600:.1f} h: hosts end by themselves without them, but log in "
                "again before the run needs AWS"
            )
        if any(each.verdict == "not decided" for each in self.permissions):
            found.append("what is not decided shows when it is first needed; hosts still end")
        return tuple(found)


def check_account(aws: Aws, hosts: AwsHosts, deadline_s: int) -> Account:
    """Ask AWS. Raises BadInput without usable credentials; what is denied is in the answer."""
    who = _credentials(aws)
    return Account(
        region=aws.region,
        credentials=who,
        permissions=(*_lists(aws), *_dry_runs(aws, hosts), *_simulated(aws, who)),
        quota=_quota(aws, hosts),
        deadline_s=deadline_s,
    )


def require_able(found: Account) -> None:
    """Raises Refused for the first thing that is denied, or a quota that is too small."""
    denied = [each.action for each in found.permissions if each.verdict == "denied"]
    if denied:
        more = f" (and {len(denied) - 1} more)" if len(denied) > 1 else ""
        raise Refused(
            f"these credentials may not do {denied[0]}{more}",
            where=found.credentials.arn,
            next_command=f"attach the policy {POLICY} to them",
        )
    quota = found.quota
    if quota.enough is False:
        raise Refused(
            f"the quota of {quota.vcpus:g} vCPUs for {quota.name} instances is below the "
            f"{quota.needed} that this plan's hosts have",
            where=found.region,
            next_command="aws service-quotas request-service-quota-increase --service-code ec2 "
            f"--quota-code {quota.code} --region {found.region} --desired-value {quota.needed}",
        )


def _credentials(aws: Aws) -> Credentials:
    with asking("to say whose credentials these are"):
        held = aws.session.get_credentials()
        answer = aws.session.client("sts", aws.region).get_caller_identity()
    end: datetime | None = getattr(held, "_expiry_time", None)
    temporary = bool(held is not None and held.token)
    source = getattr(held, "method", "") or "given"
    return Credentials(
        account=answer["Account"],
        arn=answer["Arn"],
        kind=f"{'temporary' if temporary else 'long-lived key'} ({source})",
        expires_utc=utc_text(end) if end else None,
        seconds_left=(end.astimezone(UTC) - aws.clock.now()).total_seconds() if end else None,
    )


def _asked(action: str, how: str, call: Callable[[], Any]) -> Permission:
    try:
        call()
    except ClientError as error:
        code = code_of(error)
        if code in DENIED:
            return Permission(action=action, verdict="denied", how=how)
        if code != "DryRunOperation":
            said = f"{how}: {code}, {words_of(error)}"
            return Permission(action=action, verdict="not decided", how=said)
    except BotoCoreError as error:
        return Permission(action=action, verdict="not decided", how=f"{how}: {error}")
    return Permission(action=action, verdict="allowed", how=how)


def _lists(aws: Aws) -> list[Permission]:
    """Reading, which is asked by reading; a search that may not see a kind could not find it."""
    reads: dict[str, Callable[[], Any]] = {
        "ec2:DescribeInstances": lambda: aws.ec2.describe_instances(MaxResults=5),
        "ec2:DescribeVolumes": lambda: aws.ec2.describe_volumes(MaxResults=5),
        "ec2:DescribeNetworkInterfaces": lambda: aws.ec2.describe_network_interfaces(MaxResults=5),
        "ec2:DescribeAddresses": lambda: aws.ec2.describe_addresses(),
        "ec2:DescribeSecurityGroups": lambda: aws.ec2.describe_security_groups(MaxResults=5),
        "ec2:DescribePlacementGroups": lambda: aws.ec2.describe_placement_groups(),
        "scheduler:ListScheduleGroups": lambda: aws.scheduler.list_schedule_groups(MaxResults=1),
        "iam:ListRoles": lambda: aws.iam.list_roles(MaxItems=1),
        "iam:ListInstanceProfiles": lambda: aws.iam.list_instance_profiles(MaxItems=1),
    }
    return [_asked(action, "read", call) for action, call in reads.items()]


def _dry_runs(aws: Aws, hosts: AwsHosts) -> list[Permission]:
    """What makes things, asked with DryRun."""
    ec2: Any = aws.ec2
    tags = [{"Key": "HarnessFleet", "Value": "dry-run"}]

    def launch() -> Any:
        ssm = aws.session.client("ssm", aws.region)
        image = ssm.get_parameter(Name=IMAGE)["Parameter"]["Value"]
        kinds = [{"ResourceType": kind, "Tags": tags} for kind in ("instance", "volume")]
        return ec2.run_instances(
            ImageId=image, InstanceType=hosts.types[0], MinCount=1, MaxCount=1, DryRun=True,
            TagSpecifications=kinds,
        )  # fmt: skip

    calls: dict[str, Callable[[], Any]] = {
        "ec2:RunInstances": launch,
        "ec2:CreateVpc": lambda: ec2.create_vpc(CidrBlock="10.42.0.0/16", DryRun=True),
        "ec2:CreateSecurityGroup": lambda: ec2.create_security_group(
            GroupName="harness-dry-run", Description="dry run", DryRun=True
        ),
        "ec2:CreatePlacementGroup": lambda: ec2.create_placement_group(
            GroupName="harness-dry-run", Strategy="cluster", DryRun=True
        ),
        "ec2:CreateInternetGateway": lambda: ec2.create_internet_gateway(DryRun=True),
    }
    if hosts.network == "default":
        del calls["ec2:CreateVpc"], calls["ec2:CreateInternetGateway"]
    return [_asked(action, "dry run", call) for action, call in calls.items()]


def _simulated(aws: Aws, who: Credentials) -> list[Permission]:
    """What has no dry run, by IAM's simulator (it knows no limits from outside the account)."""
    try:
        answer = aws.iam.simulate_principal_policy(
            PolicySourceArn=_principal(who.arn),
            ActionNames=list(SIMULATED),
            ResourceArns=["*"],
            ContextEntries=[
                {
                    "ContextKeyName": "aws:ResourceTag/HarnessFleet",
                    "ContextKeyValues": ["dry-run"],
                    "ContextKeyType": "string",
                }
            ],
        )
    except (ClientError, BotoCoreError) as error:
        how = f"IAM did not simulate it ({code_of(error) or error})"
        return [Permission(action=each, verdict="not decided", how=how) for each in SIMULATED]
    # 'implicitDeny' for the resource '*' may be a statement for narrower resources only.
    verdicts: dict[str, Literal["allowed", "denied", "not decided"]] = {
        "allowed": "allowed",
        "explicitDeny": "denied",
    }
    return [
        Permission(
            action=each["EvalActionName"],
            verdict=verdicts.get(str(each["EvalDecision"]), "not decided"),
            how=f"simulated: {each['EvalDecision']}",
        )
        for each in answer["EvaluationResults"]
    ]


def _principal(arn: str) -> str:
    """The role behind an assumed role's session."""
    if ":assumed-role/" not in arn:
        return arn
    start, _, rest = arn.partition(":assumed-role/")
    return f"{start.replace(':sts:', ':iam:')}:role/{rest.split('/')[0]}"


def _quota(aws: Aws, hosts: AwsHosts) -> Quota:
    code, name = QUOTAS.get(hosts.types[0][0], (G_AND_VT, "G and VT"))
    note, vcpus, needed = "", None, None
    try:
        client = aws.session.client("service-quotas", aws.region)
        vcpus = client.get_service_quota(ServiceCode="ec2", QuotaCode=code)["Quota"]["Value"]
    except (ClientError, BotoCoreError) as error:
        note = f"AWS did not say ({code_of(error) or error})"
    try:
        answer: Any = aws.ec2.describe_instance_types(InstanceTypes=list(hosts.types))  # type: ignore[arg-type]
        each = [kind["VCpuInfo"]["DefaultVCpus"] for kind in answer["InstanceTypes"]]
        needed = hosts.count * max(each) if len(each) == len(set(hosts.types)) else None
    except (ClientError, BotoCoreError) as error:
        note = f"{note} the types' vCPUs are not known ({code_of(error) or error})".strip()
    return Quota(code=code, name=name, vcpus=vcpus, needed=needed, note=note)


def operator_policy() -> dict[str, Any]:
    """The least that an operator needs, as IAM takes it."""
    value: dict[str, Any] = json.loads(POLICY.read_text())
    return value
