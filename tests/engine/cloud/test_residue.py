"""After teardown nothing of the fleet is left, what is left is named, and bystanders live."""

from __future__ import annotations

from fnmatch import fnmatch
from typing import Any

import pytest

from harness.cloud.account import operator_policy
from harness.cloud.left import Known, Left
from harness.cloud.remove import remove
from harness.cloud.residue import every_fleet, residue
from harness.cloud.sweep import find, sweep
from harness.errors import HarnessError, Leaked, Refused, Waiting
from harness.fleet.tags import FLEET
from tests.engine.cloud.fleets import Standing, bystanders, everything, stand_up
from tests.engine.cloud.launches import fleet_tags, group, launch
from tests.engine.cloud.waiting import aws_of
from tests.engine.moto.server import MotoCloud
from tests.engine.moto.shim import Seen

KINDS = {
    "instance", "volume", "interface", "address", "security group", "schedule", "schedule group",
    "placement group", "VPC", "subnet", "route table", "internet gateway", "VPC endpoint",
    "key pair", "instance profile", "role",
}  # fmt: skip


def kinds(left: tuple[Left, ...]) -> set[str]:
    return {each.kind for each in left}


def not_in_policy(calls: list[Seen]) -> set[str]:
    """Calls of EC2 and IAM that the operator's least policy does not allow."""
    allowed: list[str] = []
    for statement in operator_policy()["Statement"]:
        actions = statement["Action"]
        allowed += [actions] if isinstance(actions, str) else actions
    made = {f"{call.service}:{call.action}" for call in calls if call.service in ("ec2", "iam")}
    return {each for each in made if not any(fnmatch(each, pattern) for pattern in allowed)}


def ids(left: tuple[Left, ...], kind: str) -> set[str]:
    return {each.id for each in left if each.kind == kind}


@pytest.fixture
def standing(cloud: MotoCloud) -> Standing:
    return stand_up(cloud, "f-1")


class TestSearch:
    def test_every_kind_is_found_in_the_order_of_removal(
        self, cloud: MotoCloud, standing: Standing
    ) -> None:
        aws, _ = aws_of(cloud)
        left = residue(aws, "f-1")
        assert kinds(left) == KINDS
        assert ids(left, "instance") == set(standing.hosts)
        assert ids(left, "schedule") == {"f-1/host-0", "f-1/host-1"}
        assert {each.fleet for each in left} == {"f-1"}
        order = [each.kind for each in left]
        assert order.index("schedule") > max(
            i for i, kind in enumerate(order) if kind == "instance"
        )

    def test_interfaces_without_tags_are_found_by_attachment(
        self, cloud: MotoCloud, standing: Standing
    ) -> None:
        aws, _ = aws_of(cloud)
        found = [each for each in residue(aws, "f-1") if each.kind == "interface"]
        assert {each.why for each in found} == {
            f"attachment to {host}" for host in standing.hosts
        } | {f"its group {standing.group}"}

    def test_every_page_is_read(self, cloud: MotoCloud, standing: Standing) -> None:
        aws, _ = aws_of(cloud)
        whole = residue(aws, "f-1")
        cloud.on("SmallPages", size=1)
        assert residue(aws, "f-1") == whole

    def test_bystanders_are_never_named(self, cloud: MotoCloud, standing: Standing) -> None:
        aws, _ = aws_of(cloud)
        before = residue(aws, "f-1")
        others = bystanders(cloud, standing)
        after = residue(aws, "f-1")
        assert after == before
        assert not others & {each.id for each in after}

    def test_terminated_hosts_are_no_residue_and_known_ids_are_followed(
        self, cloud: MotoCloud
    ) -> None:
        aws, _ = aws_of(cloud)
        host = launch(cloud, {"Name": "no fleet tag"})
        volume = cloud.client("ec2").describe_volumes()["Volumes"][0]["VolumeId"]
        assert residue(aws, "f-1") == ()
        known = Known(instances=(host,), volumes=(volume,))
        assert {each.id for each in residue(aws, "f-1", known=known)} >= {host, volume}
        cloud.client("ec2").terminate_instances(InstanceIds=[host])
        assert residue(aws, "f-1", known=known) == ()

    def test_other_regions_that_an_attempt_touched_are_searched(self, cloud: MotoCloud) -> None:
        aws, _ = aws_of(cloud)
        far = launch(cloud, fleet_tags(), region="eu-west-1", zone="eu-west-1a")
        assert residue(aws, "f-1") == ()
        found = residue(aws, "f-1", regions=("us-east-1", "eu-west-1"))
        assert ids(found, "instance") == {far}
        assert {each.region for each in found} == {"eu-west-1"}

    @pytest.mark.parametrize(
        ("service", "action"),
        [
            ("ec2", "DescribeNetworkInterfaces"),
            ("ec2", "DescribePlacementGroups"),
            ("scheduler", "GET /schedule-groups"),
            ("iam", "ListRoles"),
        ],
    )
    def test_what_may_not_be_seen_is_an_error_and_not_nothing(
        self, cloud: MotoCloud, service: str, action: str
    ) -> None:
        aws, _ = aws_of(cloud)
        cloud.on("Denied", service=service, action=action)
        with pytest.raises(Refused, match="refused"):
            residue(aws, "f-1")

    def test_all_fleets_of_a_region(self, cloud: MotoCloud, standing: Standing) -> None:
        aws, _ = aws_of(cloud)
        launch(cloud, fleet_tags("f-2"))
        found = every_fleet(aws)
        assert set(found) == {"f-1", "f-2"}
        assert found["f-1"] == residue(aws, "f-1")


class TestRemoval:
    def test_everything_goes_and_bystanders_stay(
        self, cloud: MotoCloud, standing: Standing
    ) -> None:
        aws, _ = aws_of(cloud)
        others = bystanders(cloud, standing, inside=False)
        before = everything(cloud)
        assert others <= before
        asked_before = len(cloud.calls())
        removed = remove(aws, residue(aws, "f-1"))
        assert not not_in_policy(cloud.calls()[asked_before:])
        assert residue(aws, "f-1") == ()
        assert others <= everything(cloud)
        assert {each.kind for each in removed} == KINDS
        assert remove(aws, residue(aws, "f-1")) == ()

    def test_slow_hosts_and_lingering_volumes_are_waited_for(
        self, cloud: MotoCloud, standing: Standing
    ) -> None:
        aws, waits = aws_of(cloud)
        cloud.on("LingeringVolumes", seconds=30)
        cloud.on("SlowTerminate", seconds=400)
        remove(aws, residue(aws, "f-1"))
        assert residue(aws, "f-1") == () and waits.total >= 400

    def test_schedules_stay_while_a_host_does_not_end(
        self, cloud: MotoCloud, standing: Standing
    ) -> None:
        aws, _ = aws_of(cloud)
        cloud.client("ec2").modify_instance_attribute(
            InstanceId=standing.hosts[0], DisableApiTermination={"Value": True}
        )
        with pytest.raises(Waiting, match="termination protection"):
            remove(aws, residue(aws, "f-1"))
        left = residue(aws, "f-1")
        assert ids(left, "instance") == {standing.hosts[0]}
        assert len(ids(left, "schedule")) == 2

    def test_a_group_held_by_another_host_is_named_with_its_holder(
        self, cloud: MotoCloud, standing: Standing
    ) -> None:
        aws, waits = aws_of(cloud)
        other = launch(
            cloud, {"Name": "mine"}, SubnetId=standing.subnet, SecurityGroupIds=[standing.group]
        )
        with pytest.raises(Leaked, match=other) as caught:
            remove(aws, residue(aws, "f-1"))
        assert standing.group in caught.value.where and caught.value.exit_code == 5
        assert 300 <= waits.total < 400
        shown = cloud.client("ec2").describe_instances(InstanceIds=[other])
        assert shown["Reservations"][0]["Instances"][0]["State"]["Name"] == "running"

    def test_a_rule_of_another_group_is_named(self, cloud: MotoCloud) -> None:
        aws, _ = aws_of(cloud)
        mine, other = group(cloud, "mine", fleet_tags()), group(cloud, "other", {"Name": "x"})
        rule: list[Any] = [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": mine}]}]
        cloud.client("ec2").authorize_security_group_ingress(GroupId=other, IpPermissions=rule)
        with pytest.raises(Leaked, match=f"a rule of {other}"):
            remove(aws, residue(aws, "f-1"))

    def test_groups_that_name_each_other_go(self, cloud: MotoCloud) -> None:
        aws, waits = aws_of(cloud)
        one, two = (group(cloud, name, fleet_tags()) for name in ("one", "two"))
        for mine, other in ((one, two), (two, one)):
            rule: list[Any] = [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": other}]}]
            cloud.client("ec2").authorize_security_group_ingress(GroupId=mine, IpPermissions=rule)
        remove(aws, residue(aws, "f-1"))
        assert residue(aws, "f-1") == () and waits.total == 0

    def test_a_denied_removal_says_so_and_what_is_left_is_found_again(
        self, cloud: MotoCloud, standing: Standing
    ) -> None:
        aws, _ = aws_of(cloud)
        cloud.on("Denied", action="DeleteSubnet")
        with pytest.raises(HarnessError, match="subnet"):
            remove(aws, residue(aws, "f-1"))
        assert "subnet" in kinds(residue(aws, "f-1"))
        cloud.off("Denied")
        remove(aws, residue(aws, "f-1"))
        assert residue(aws, "f-1") == ()


class TestSweep:
    def test_a_living_fleet_is_not_swept_without_a_reason(
        self, cloud: MotoCloud, standing: Standing
    ) -> None:
        aws, _ = aws_of(cloud)
        found = find(aws, ("us-east-1",))
        assert [(each.fleet, each.study) for each in found] == [("f-1", "toy")]
        with pytest.raises(Refused, match="2 host"):
            sweep(aws, found[0], ("us-east-1",))
        assert len(ids(residue(aws, "f-1"), "instance")) == 2
        swept = sweep(aws, found[0], ("us-east-1",), abandon="a test")
        assert swept.left == () and len(swept.removed) == len(found[0].left)
        assert find(aws, ("us-east-1",)) == ()

    def test_a_fleet_past_its_deadline_is_swept(self, cloud: MotoCloud) -> None:
        aws, _ = aws_of(cloud)
        launch(cloud, {**fleet_tags(), "ExpiresAt": "2020-01-01T00:00:00.000000Z"})
        other = launch(cloud, {FLEET: "f-11"})
        sweep(aws, find(aws, ("us-east-1",), "f-1")[0], ("us-east-1",))
        assert ids(every_fleet(aws)["f-11"], "instance") == {other}
        assert residue(aws, "f-1") == ()
