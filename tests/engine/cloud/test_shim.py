"""The shim's rules do what AWS's pages say; what they leave out would be tested against nothing."""

from __future__ import annotations

import json
import urllib.request
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.engine.cloud.launches import fleet_tags, group, launch, subnet_of, tag_list
from tests.engine.moto.server import MotoCloud
from tests.engine.moto.shim import RULES


def state(cloud: MotoCloud, host: str) -> str:
    found = cloud.client("ec2").describe_instances(InstanceIds=[host])
    return str(found["Reservations"][0]["Instances"][0]["State"]["Name"])


def refused(call: Any, **arguments: Any) -> str:
    with pytest.raises(ClientError) as caught:
        call(**arguments)
    return str(caught.value.response["Error"]["Code"])


def test_every_rule_names_its_page() -> None:
    assert not [name for name, rule in RULES.items() if not rule.page.endswith(".html")]


class TestLaunches:
    def test_no_capacity_in_one_zone_only(self, cloud: MotoCloud) -> None:
        cloud.on("NoCapacity", zone="us-east-1a")
        with pytest.raises(ClientError, match="InsufficientInstanceCapacity") as caught:
            launch(cloud, fleet_tags())
        assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 500
        assert state(cloud, launch(cloud, fleet_tags(), zone="us-east-1b")) == "running"

    def test_no_capacity_for_the_second_host(self, cloud: MotoCloud) -> None:
        cloud.on("NoCapacity", nth=(2,))
        launch(cloud, fleet_tags())
        with pytest.raises(ClientError, match="InsufficientInstanceCapacity"):
            launch(cloud, fleet_tags())
        launch(cloud, fleet_tags())

    def test_a_zone_that_does_not_offer_the_type(self, cloud: MotoCloud) -> None:
        ec2 = cloud.client("ec2")
        offered: dict[str, Any] = {
            "LocationType": "availability-zone",
            "Filters": [{"Name": "instance-type", "Values": ["g6e.xlarge"]}],
        }
        before = {each["Location"] for each in ec2.describe_instance_type_offerings(**offered)[
            "InstanceTypeOfferings"]}  # fmt: skip
        zone = min(before)
        cloud.on("NotOffered", zone=zone, type="g6e.xlarge")
        after = ec2.describe_instance_type_offerings(**offered)["InstanceTypeOfferings"]
        assert {each["Location"] for each in after} == before - {zone}
        with pytest.raises(ClientError, match="Unsupported"):
            launch(cloud, fleet_tags(), zone=zone)

    def test_quota_denial_and_throttling(self, cloud: MotoCloud) -> None:
        for rule, code in (
            ("VcpuLimit", "VcpuLimitExceeded"),
            ("Denied", "UnauthorizedOperation"),
            ("Throttled", "RequestLimitExceeded"),
        ):
            cloud.on(rule, **({} if rule == "VcpuLimit" else {"action": "RunInstances"}))
            with pytest.raises(ClientError, match=code):
                launch(cloud, fleet_tags())
            cloud.off(rule)
        launch(cloud, fleet_tags())

    def test_a_new_host_is_not_found_at_first(self, cloud: MotoCloud) -> None:
        cloud.on("NotYetVisible", reads=2)
        host, ec2 = launch(cloud, fleet_tags()), cloud.client("ec2")
        by_tag = [{"Name": "tag:HarnessFleet", "Values": ["f-1"]}]
        assert refused(ec2.describe_instances, InstanceIds=[host]) == "InvalidInstanceID.NotFound"
        assert not ec2.describe_instances(Filters=by_tag)["Reservations"][0]["Instances"]
        assert state(cloud, host) == "running"

    def test_a_host_that_ends_itself_says_why(self, cloud: MotoCloud) -> None:
        cloud.on("InternalError", nth=(1,))
        host = launch(cloud, fleet_tags())
        found = cloud.client("ec2").describe_instances(InstanceIds=[host])
        seen = found["Reservations"][0]["Instances"][0]
        assert (seen["State"]["Name"], seen["StateReason"]["Code"]) == (
            "terminated",
            "Client.InternalError",
        )

    def test_status_checks_that_fail(self, cloud: MotoCloud) -> None:
        cloud.on("ChecksFail", nth=(2,))
        hosts = [launch(cloud, fleet_tags()) for _ in range(2)]
        found = cloud.client("ec2").describe_instance_status(InstanceIds=hosts)
        status = {
            each["InstanceId"]: each["InstanceStatus"]["Status"]
            for each in found["InstanceStatuses"]
        }
        assert status == {hosts[0]: "ok", hosts[1]: "impaired"}

    def test_a_client_token_launches_once(self, cloud: MotoCloud) -> None:
        first = launch(cloud, fleet_tags(), ClientToken="t-1")
        assert launch(cloud, fleet_tags(), ClientToken="t-1") == first
        with pytest.raises(ClientError, match="IdempotentParameterMismatch"):
            launch(cloud, fleet_tags(), ClientToken="t-1", InstanceType="g6e.2xlarge")

    def test_volumes_keep_their_speed_and_interfaces_have_no_tags(self, cloud: MotoCloud) -> None:
        launch(cloud, fleet_tags())
        ec2 = cloud.client("ec2")
        volume = ec2.describe_volumes()["Volumes"][0]
        assert (volume["Iops"], volume["Throughput"]) == (5000, 500)
        assert not ec2.describe_network_interfaces()["NetworkInterfaces"][0]["TagSet"]


class TestEndings:
    def test_hosts_take_their_time_and_hold_what_is_theirs(self, cloud: MotoCloud) -> None:
        held = group(cloud, "g", fleet_tags())
        host, ec2 = launch(cloud, fleet_tags(), SecurityGroupIds=[held]), cloud.client("ec2")
        cloud.on("SlowTerminate", seconds=3600)
        answer = ec2.terminate_instances(InstanceIds=[host])["TerminatingInstances"][0]
        assert answer["CurrentState"]["Name"] == state(cloud, host) == "shutting-down"
        assert refused(ec2.delete_security_group, GroupId=held) == "DependencyViolation"
        assert ec2.describe_volumes()["Volumes"]
        cloud.advance(3601)
        assert state(cloud, host) == "terminated"
        assert not ec2.describe_volumes()["Volumes"]
        ec2.delete_security_group(GroupId=held)

    def test_volumes_stay_for_a_while(self, cloud: MotoCloud) -> None:
        host, ec2 = launch(cloud, fleet_tags()), cloud.client("ec2")
        cloud.on("LingeringVolumes", seconds=3600)
        ec2.terminate_instances(InstanceIds=[host])
        assert state(cloud, host) == "terminated" and ec2.describe_volumes()["Volumes"]
        cloud.advance(3601)
        assert not ec2.describe_volumes()["Volumes"]

    def test_groups_that_name_each_other_stay(self, cloud: MotoCloud) -> None:
        ec2 = cloud.client("ec2")
        one, two = (group(cloud, name, fleet_tags()) for name in ("one", "two"))
        for mine, other in ((one, two), (two, one)):
            rule = [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": other}]}]
            ec2.authorize_security_group_ingress(GroupId=mine, IpPermissions=rule)
        assert refused(ec2.delete_security_group, GroupId=one) == "DependencyViolation"
        rule = [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": one}]}]
        ec2.revoke_security_group_ingress(GroupId=two, IpPermissions=rule)
        ec2.delete_security_group(GroupId=one)

    def test_one_wrong_id_ends_none(self, cloud: MotoCloud) -> None:
        host, ec2 = launch(cloud, fleet_tags()), cloud.client("ec2")
        wrong = [host, "i-0123456789abcdef0"]
        code = refused(ec2.terminate_instances, InstanceIds=wrong)
        assert (code, state(cloud, host)) == ("InvalidInstanceID.NotFound", "running")

    def test_protection_works_by_zone(self, cloud: MotoCloud) -> None:
        ec2 = cloud.client("ec2")
        a, b = (launch(cloud, fleet_tags(), zone=f"us-east-1{zone}") for zone in "ab")
        ec2.modify_instance_attribute(InstanceId=a, DisableApiTermination={"Value": True})
        assert refused(ec2.terminate_instances, InstanceIds=[a, b]) == "OperationNotPermitted"
        assert (state(cloud, a), state(cloud, b)) == ("running", "terminated")

    def test_forcing_is_refused_where_it_is_not_supported(self, cloud: MotoCloud) -> None:
        host, ec2 = launch(cloud, fleet_tags()), cloud.client("ec2")
        cloud.on("ForceRefused", skip=True, force=True)
        for flags in ({"Force": True, "SkipOsShutdown": True}, {"Force": True}):
            code = refused(ec2.terminate_instances, InstanceIds=[host], **flags)
            assert (code, state(cloud, host)) == ("UnsupportedOperation", "running")
        ec2.terminate_instances(InstanceIds=[host])
        assert state(cloud, host) == "terminated"

    def test_a_terminate_that_errors_ends_nothing(self, cloud: MotoCloud) -> None:
        host, ec2 = launch(cloud, fleet_tags()), cloud.client("ec2")
        cloud.on("TerminateFails", times=1)
        assert refused(ec2.terminate_instances, InstanceIds=[host]) == "InternalError"
        assert state(cloud, host) == "running"

    def test_placement_groups_are_there_and_held(self, cloud: MotoCloud) -> None:
        ec2 = cloud.client("ec2")
        tags = [{"ResourceType": "placement-group", "Tags": tag_list(fleet_tags())}]
        ec2.create_placement_group(GroupName="p", Strategy="cluster", TagSpecifications=tags)
        host = launch(cloud, fleet_tags(), Placement={"GroupName": "p"})
        by_tag = [{"Name": "tag:HarnessFleet", "Values": ["f-1"]}]
        assert ec2.describe_placement_groups(Filters=by_tag)["PlacementGroups"]
        code = refused(ec2.delete_placement_group, GroupName="p")
        assert code == "InvalidPlacementGroup.InUse"
        ec2.terminate_instances(InstanceIds=[host])
        ec2.delete_placement_group(GroupName="p")
        assert not ec2.describe_placement_groups()["PlacementGroups"]


class TestAccountAndAnswers:
    def test_answers_come_in_pages(self, cloud: MotoCloud) -> None:
        for _ in range(5):
            launch(cloud, fleet_tags())
        cloud.on("SmallPages", size=2)
        ec2 = cloud.client("ec2")
        for name, key in (("describe_instances", "Reservations"), ("describe_volumes", "Volumes")):
            assert len(getattr(ec2, name)()[key]) == 2
            assert len(ec2.get_paginator(name).paginate().build_full_result()[key]) == 5

    def test_quota_and_dry_runs(self, cloud: MotoCloud) -> None:
        asked = {"ServiceCode": "ec2", "QuotaCode": "L-DB2E81BA"}
        quota = cloud.client("service-quotas").get_service_quota(**asked)["Quota"]
        assert quota["Value"] == 64
        ec2 = cloud.client("ec2")
        assert refused(ec2.create_vpc, CidrBlock="10.0.0.0/16", DryRun=True) == "DryRunOperation"
        cloud.on("Denied", action="CreateVpc")
        code = refused(ec2.create_vpc, CidrBlock="10.0.0.0/16", DryRun=True)
        assert code == "UnauthorizedOperation"
        assert len(ec2.describe_vpcs()["Vpcs"]) == 1

    def test_a_schedule_has_its_form_a_time_to_come_and_fires_as_stored(
        self, cloud: MotoCloud
    ) -> None:
        scheduler, host = cloud.client("scheduler"), launch(cloud, fleet_tags())
        fields: dict[str, Any] = {
            "Name": "end",
            "FlexibleTimeWindow": {"Mode": "OFF"},
            "Target": {
                "Arn": "arn:aws:scheduler:::aws-sdk:ec2:terminateInstances",
                "RoleArn": "arn:aws:iam::123456789012:role/end",
                "Input": json.dumps({"InstanceIds": [host]}),
            },
        }
        for wrong in ("at(2020-01-01T00:00:00)", "at(2040-01-01 00:00)", "2040-01-01T00:00:00"):
            code = refused(scheduler.create_schedule, ScheduleExpression=wrong, **fields)
            assert code == "ValidationException"
        scheduler.create_schedule(ScheduleExpression="at(2040-01-01T00:00:00)", **fields)
        cloud.fire("default", "end")
        assert state(cloud, host) == "terminated"

    def test_rules_are_switched_over_http_and_calls_are_listed(self, cloud: MotoCloud) -> None:
        def post(what: str, **value: Any) -> Any:
            request = urllib.request.Request(
                f"{cloud.endpoint}/_shim/{what}", json.dumps(value).encode()
            )
            with urllib.request.urlopen(request) as answer:
                return json.loads(answer.read())

        post("on", rule="NoCapacity", type="g6e.xlarge")
        with pytest.raises(ClientError, match="InsufficientInstanceCapacity"):
            launch(cloud, fleet_tags())
        post("off", rule="NoCapacity")
        launch(cloud, fleet_tags())
        seen = [each["status"] for each in post("calls") if each["action"] == "RunInstances"]
        assert seen == [500, 200]

    def test_other_regions_and_the_store_are_there(self, cloud: MotoCloud) -> None:
        assert subnet_of(cloud, "eu-west-1a", "eu-west-1")
        s3 = cloud.client("s3")
        s3.create_bucket(Bucket="kept")
        s3.put_object(Bucket="kept", Key="a/b", Body=b"x" * 100_000)
        assert len(s3.get_object(Bucket="kept", Key="a/b")["Body"].read()) == 100_000
