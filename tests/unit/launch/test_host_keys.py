"""Host keys are pinned from the host's publication, beside what its console shows."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from harness.clock import Clock
from harness.cloud.clients import Aws
from harness.cloud.console import BEGIN, END, compare, console_keys, witness
from harness.errors import Refused
from harness.fleet import places
from harness.fleet.outputs import StackHost
from harness.fleet.stack import StackFleet
from harness.launch.admit import admit_plan
from harness.launch.fleets import FleetPlace
from harness.plan import LoadedPlan

CONSOLE = "moto.ec2.responses.general.SAMPLE_CONSOLE_OUTPUT"


def blob(algorithm: str, fill: bytes) -> str:
    data = b"".join(len(each).to_bytes(4, "big") + each for each in (algorithm.encode(), fill * 32))
    return base64.b64encode(data).decode()


ED, EC = "ssh-ed25519", "ecdsa-sha2-nistp256"
OURS, OTHERS = blob(ED, b"a"), blob(ED, b"b")
CURVE = blob(EC, b"c")
PUBLISHED = (f"{EC} {CURVE}", f"{ED} {OURS}")


def console(*lines: str, prefix: str = "") -> str:
    inside = [BEGIN, *lines, END]
    return "\n".join(["boot", *(prefix + each for each in inside), "login:"]) + "\n"


@pytest.mark.parametrize("prefix", ["", "[   21.412] cloud-init[1320]: ", "<14>Nov 30 ec2: "])
def test_keys_are_read_whatever_stands_before_them(prefix: str) -> None:
    text = console(f"{EC} {CURVE} root@ip-10-0-0-1", f"{ED} {OURS} root@ip", prefix=prefix)
    assert console_keys(text) == {EC: {CURVE}, ED: {OURS}}
    assert compare(PUBLISHED, console_keys(text)).verdict == "agrees"


def test_another_key_differs_and_the_newest_block_counts() -> None:
    first, second = console(f"{ED} {OTHERS} root@x"), console(f"{ED} {OURS} root@x")
    assert compare(PUBLISHED, console_keys(first)).verdict == "differs"
    assert compare(PUBLISHED, console_keys(first + second)).verdict == "agrees"
    assert compare(PUBLISHED, console_keys(second + first)).verdict == "differs"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no block at all",
        console(f"{ED} {OURS}").replace(END, ""),
        console(f"{ED} {OURS[:20]}[  3.1] usb 1-1: new device"),
        console(f"{ED} {OURS[:-4]}"),
        console("ssh-rsa AAAA"),
        END + "\n" + BEGIN + f"\n{ED} {OTHERS}",
    ],
)
def test_what_is_no_whole_key_is_no_witness(text: str) -> None:
    assert compare(PUBLISHED, console_keys(text)).verdict == "absent"


@pytest.fixture
def place(aws: Aws, loaded: LoadedPlan, tmp_path: Path) -> FleetPlace:
    return admit_plan(loaded, tmp_path / "runs", aws, Clock(), address="198.51.100.7").place


def published(aws: Aws, place: FleetPlace) -> StackHost:
    """A host whose keys lie in the bucket."""
    ec2: Any = aws.ec2
    made = ec2.run_instances(ImageId="ami-12345678", MinCount=1, MaxCount=1)["Instances"][0]
    s3: Any = aws.session.client("s3")
    s3.create_bucket(Bucket=place.admitted.bucket)
    record = {"instance_id": made["InstanceId"], "keys": PUBLISHED}
    key = places.host_keys(place.admitted, 0)
    s3.put_object(Bucket=place.admitted.bucket, Key=key, Body=json.dumps(record).encode())
    return StackHost(
        slot=0, instance_id=made["InstanceId"], type="g6e.xlarge", zone="us-east-1a",
        private_address="10.0.0.1", public_address="198.51.100.1",
    )  # fmt: skip


def opened(aws: Aws, place: FleetPlace) -> StackFleet:
    fleet = StackFleet(place.runs / "toy" / "run-1", place.admitted.fleet)
    fleet.aws = aws
    return fleet


def test_an_agreeing_console_is_silent_and_an_empty_one_is_a_note(
    aws: Aws, place: FleetPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = published(aws, place)
    for text, notes in ((console(f"{ED} {OURS} x", f"{EC} {CURVE} x"), 0), ("booting", 1)):
        monkeypatch.setattr(CONSOLE, text)
        fleet = opened(aws, place)
        fleet._hosts = (fleet._host(host),)
        assert fleet._hosts[0].link.login.host_keys == PUBLISHED
        assert len(fleet.notes()) == notes
    assert fleet.notes()[0].startswith("host keys of host-0: its console shows none")


def test_a_console_with_another_key_refuses_the_connection(
    aws: Aws, place: FleetPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = published(aws, place)
    monkeypatch.setattr(CONSOLE, console(f"{ED} {OTHERS} root@ip"))
    with pytest.raises(Refused, match="its console shows another ssh-ed25519 key") as refused:
        opened(aws, place)._host(host)
    assert refused.value.next_command.startswith("harness down")


def test_a_console_that_may_not_be_read_is_said(aws: Aws) -> None:
    seen = witness(aws, "i-0123456789abcdef0", PUBLISHED)
    assert seen.verdict == "absent" and "InvalidInstanceID.NotFound" in seen.said
