"""Only the cloud's own word ends a host, and what is not ended is said with its id."""

from __future__ import annotations

from typing import Any

import pytest

from harness.cloud import observe
from harness.cloud.terminate import EndedHost, end_hosts, ended_or_raise, follow_volumes
from harness.errors import HarnessError, Waiting
from tests.engine.cloud.launches import fleet_tags, launch
from tests.engine.cloud.waiting import aws_of
from tests.engine.moto.server import MotoCloud


def state(cloud: MotoCloud, host: str) -> str:
    found = cloud.client("ec2").describe_instances(InstanceIds=[host])
    return str(found["Reservations"][0]["Instances"][0]["State"]["Name"])


def ended(result: EndedHost | HarnessError) -> EndedHost:
    assert isinstance(result, EndedHost), result
    return result


def failed(result: EndedHost | HarnessError) -> HarnessError:
    assert isinstance(result, HarnessError), result
    return result


def forms(cloud: MotoCloud) -> list[tuple[bool, bool]]:
    return [
        ("Force" in call.params, "SkipOsShutdown" in call.params)
        for call in cloud.calls("TerminateInstances")
    ]


def test_hosts_are_forced_one_call_each_and_their_volumes_followed(cloud: MotoCloud) -> None:
    aws, _ = aws_of(cloud)
    hosts = [launch(cloud, fleet_tags(slot=slot)) for slot in range(2)]
    volumes = [v for h in observe.instances_of_fleet(aws, "f-1") for v in h.volumes]
    assert len(volumes) == 2
    results = end_hosts(aws, hosts)
    assert [each.id for each in ended_or_raise(results)] == hosts
    assert {ended(each).how for each in results.values()} == {"force, no OS shutdown"}
    assert forms(cloud) == [(True, True)] * 2
    assert [each.id for each in follow_volumes(aws, volumes)] == volumes


@pytest.mark.parametrize(
    ("rule", "how", "asked"),
    [
        ({"skip": True}, "force", [(True, True), (True, False)]),
        (
            {"skip": True, "force": True, "code": "InvalidParameterCombination"},
            "default",
            [(True, True), (True, False), (False, False)],
        ),
    ],
)
def test_types_that_cannot_be_forced_fall_back(
    cloud: MotoCloud, rule: dict[str, Any], how: str, asked: list[tuple[bool, bool]]
) -> None:
    aws, _ = aws_of(cloud)
    host = launch(cloud, fleet_tags())
    cloud.on("ForceRefused", **rule)
    assert ended(end_hosts(aws, [host])[host]).how == how
    assert forms(cloud) == asked
    assert state(cloud, host) == "terminated"


def test_a_slow_end_is_waited_for_and_its_time_is_when_it_was_seen(cloud: MotoCloud) -> None:
    aws, waits = aws_of(cloud)
    host = launch(cloud, fleet_tags())
    cloud.on("SlowTerminate", seconds=400)
    done = ended(end_hosts(aws, [host])[host])
    assert 400 <= waits.total <= 420
    assert done.asked_utc < done.ended_utc == aws.clock.utc()


def test_past_the_limit_it_is_said_and_the_same_command_goes_on(cloud: MotoCloud) -> None:
    aws, _ = aws_of(cloud)
    host = launch(cloud, fleet_tags())
    cloud.on("SlowTerminate", seconds=1500)
    said = failed(end_hosts(aws, [host])[host])
    assert said.exit_code == 4 and host in said.where
    assert "'shutting-down' 900 s after" in said.what
    assert ended(end_hosts(aws, [host])[host]).how == "force, no OS shutdown"


def test_protection_is_said_once_and_hides_no_other_host(cloud: MotoCloud) -> None:
    aws, _ = aws_of(cloud)
    kept, other = (launch(cloud, fleet_tags(slot=slot)) for slot in range(2))
    cloud.client("ec2").modify_instance_attribute(
        InstanceId=kept, DisableApiTermination={"Value": True}
    )
    results = end_hosts(aws, [kept, other])
    assert "termination protection" in failed(results[kept]).what
    assert f"--instance-id {kept}" in failed(results[kept]).next_command
    assert ended(results[other]).id == other
    assert len(cloud.calls("TerminateInstances")) == 2
    assert (state(cloud, kept), state(cloud, other)) == ("running", "terminated")
    with pytest.raises(Waiting, match=kept):
        ended_or_raise(results)


def test_an_error_of_aws_never_counts_as_ended(cloud: MotoCloud) -> None:
    aws, _ = aws_of(cloud)
    host = launch(cloud, fleet_tags())
    cloud.on("Denied", action="TerminateInstances")
    said = failed(end_hosts(aws, [host])[host])
    assert "UnauthorizedOperation" in said.what and "runs and costs on" in said.what
    assert state(cloud, host) == "running"
    cloud.off("Denied")
    ended(end_hosts(aws, [host])[host])


def test_a_throttled_call_is_tried_again(cloud: MotoCloud) -> None:
    aws, _ = aws_of(cloud)
    host = launch(cloud, fleet_tags())
    cloud.on("Throttled", action="TerminateInstances", times=1)
    ended(end_hosts(aws, [host])[host])


def test_a_wrong_id_ends_no_other_and_is_given_time_to_appear(cloud: MotoCloud) -> None:
    aws, waits = aws_of(cloud)
    host, unknown = launch(cloud, fleet_tags()), "i-0123456789abcdef0"
    results = end_hosts(aws, [unknown, host])
    assert ended(results[host]).how == "force, no OS shutdown"
    assert ended(results[unknown]).reason == "AWS no longer knows the id"
    assert waits.total >= observe.APPEAR_S


def test_a_new_host_that_is_not_visible_yet_is_ended(cloud: MotoCloud) -> None:
    aws, _ = aws_of(cloud)
    cloud.on("NotYetVisible", reads=2)
    host = launch(cloud, fleet_tags())
    ended(end_hosts(aws, [host])[host])
    assert state(cloud, host) == "terminated"


class TestVolumes:
    def volumes(self, cloud: MotoCloud) -> list[str]:
        return [each["VolumeId"] for each in cloud.client("ec2").describe_volumes()["Volumes"]]

    def test_they_are_followed_until_not_found(self, cloud: MotoCloud) -> None:
        aws, waits = aws_of(cloud)
        host = launch(cloud, fleet_tags())
        ids = self.volumes(cloud)
        cloud.on("SlowTerminate", seconds=100)
        cloud.client("ec2").terminate_instances(InstanceIds=[host])
        gone = follow_volumes(aws, ids)
        assert [(each.id, each.deleted) for each in gone] == [(ids[0], False)]
        assert waits.total >= 100 and not self.volumes(cloud)

    def test_one_that_outlived_its_host_is_deleted(self, cloud: MotoCloud) -> None:
        aws, _ = aws_of(cloud)
        host = launch(cloud, fleet_tags())
        ids = self.volumes(cloud)
        cloud.on("LingeringVolumes", seconds=-1)
        ended_or_raise(end_hosts(aws, [host]))
        assert [each.deleted for each in follow_volumes(aws, ids)] == [True]
        assert not self.volumes(cloud)

    def test_what_is_left_is_named(self, cloud: MotoCloud) -> None:
        aws, _ = aws_of(cloud)
        launch(cloud, fleet_tags())
        ids = self.volumes(cloud)
        with pytest.raises(Waiting, match=ids[0]):
            follow_volumes(aws, ids)


class TestLooking:
    def test_every_page_is_read(self, cloud: MotoCloud) -> None:
        aws, _ = aws_of(cloud)
        hosts = {launch(cloud, fleet_tags(slot=slot)) for slot in range(5)}
        cloud.on("SmallPages", size=2)
        found = observe.instances_of_fleet(aws, "f-1")
        assert {each.id for each in found} == hosts
        assert {each.slot for each in found} == {str(slot) for slot in range(5)}
        assert len(observe.find_volumes(aws, {"tag:HarnessFleet": "f-1"})) == 5
        assert {each.verdict for each in observe.checks(aws, sorted(hosts)).values()} == {"ready"}

    def test_nearly_the_same_tag_is_another_thing(self, cloud: MotoCloud) -> None:
        aws, _ = aws_of(cloud)
        for fleet in ("f-10", "f-", "F-1", "f-?", "f-*"):
            launch(cloud, fleet_tags(fleet))
        mine = launch(cloud, fleet_tags("f-1"))
        assert [each.id for each in observe.instances_of_fleet(aws, "f-1")] == [mine]
        assert [each.fleet for each in observe.instances_of_fleet(aws, "f-?")] == ["f-?"]
        assert observe.instances_by_tag(aws, {}) == ()

    def test_a_new_id_is_never_dropped(self, cloud: MotoCloud) -> None:
        aws, waits = aws_of(cloud)
        cloud.on("NotYetVisible", reads=3)
        host = launch(cloud, fleet_tags())
        assert [each.id for each in observe.new_instances(aws, [host])] == [host]
        assert waits.total >= 10
        with pytest.raises(Waiting, match=r"i-0123456789abcdef0.* may exist and cost"):
            observe.new_instances(aws, [host, "i-0123456789abcdef0"])

    def test_running_with_failed_checks_is_not_ready(self, cloud: MotoCloud) -> None:
        aws, _ = aws_of(cloud)
        cloud.on("ChecksFail", nth=(2,))
        good, bad = (launch(cloud, fleet_tags()) for _ in range(2))
        seen = observe.checks(aws, [good, bad])
        assert (seen[good].verdict, seen[bad].verdict) == ("ready", "failed")
        assert (seen[bad].state, seen[bad].instance) == ("running", "impaired")

    def test_a_host_that_ended_itself_says_why(self, cloud: MotoCloud) -> None:
        aws, _ = aws_of(cloud)
        cloud.on("InternalError")
        host = launch(cloud, fleet_tags())
        seen = observe.checks(aws, [host])[host]
        assert seen.verdict == "failed" and "Client.InternalError" in seen.reason

    @pytest.mark.parametrize("action", ["DescribeInstances", "DescribeVolumes"])
    def test_what_aws_refuses_to_show_is_an_error_and_not_nothing(
        self, cloud: MotoCloud, action: str
    ) -> None:
        aws, _ = aws_of(cloud)
        cloud.on("Denied", action=action)
        with pytest.raises(HarnessError, match="UnauthorizedOperation") as caught:
            observe.instances_of_fleet(aws, "f-1")
            observe.find_volumes(aws, {"tag:HarnessFleet": "f-1"})
        assert caught.value.exit_code == 3
