"""The whole program: from one admitted fleet to the stack's one output."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pulumi
import pulumi_aws

from harness.errors import HarnessError
from harness.fleet.admitted import AdmittedFleet
from harness.fleet.outputs import OUTPUT, StackHost, StackOutputs
from infra.access import Access, AccessArgs
from infra.bucket import Bucket, BucketArgs
from infra.deadline import Deadlines, DeadlinesArgs, HostDeadline, HostDeadlineArgs
from infra.gate import gate, seal
from infra.hooks import HostHooks
from infra.hosts import Host, HostArgs, placement_group
from infra.identity import HostIdentity, HostIdentityArgs
from infra.network import Network, NetworkArgs
from infra.wiring import Wiring
from trainer import contract

MAX_RETRIES = 2
"""Of each AWS request: with the provider's default it waits out a lack of capacity for most of an
hour, while the fleet's deadline comes nearer (pulumi-aws, provider configuration)."""


def stand_up(wiring: Wiring) -> None:
    """Declare everything and export `fleet`. Raises pulumi.RunError with one sentence."""
    try:
        released = wiring.preserved()
        if not released:
            wiring.require_admission()
        _declare(wiring, released)
    except HarnessError as error:
        after = f" Next: {error.next_command}" if error.next_command else ""
        raise pulumi.RunError(f"{error.sentence()}{after}") from None


def _declare(wiring: Wiring, released: bool) -> None:
    admitted = wiring.admitted
    first = seal(admitted)
    provider = pulumi_aws.Provider(
        "aws",
        region=admitted.region,
        allowed_account_ids=[admitted.account],
        max_retries=MAX_RETRIES,
    )
    opts = pulumi.ResourceOptions(providers=[provider], depends_on=[first])
    network = Network("network", NetworkArgs(admitted), opts)
    access = Access("access", AccessArgs(admitted, network.vpc_id), opts)
    identity = HostIdentity("identity", HostIdentityArgs(admitted), opts)
    bucket = Bucket("bucket", BucketArgs(admitted), opts)
    deadlines = Deadlines("deadlines", DeadlinesArgs(admitted), opts)
    together = placement_group(
        admitted, pulumi.ResourceOptions(provider=provider, depends_on=[first])
    )
    hooks = HostHooks(wiring, released)
    after: list[pulumi.Resource] = [first, network, access, identity, bucket, deadlines]
    if released:
        after.append(_gate(wiring, first, [], [], released))
    hosts: list[Host] = []
    schedules: list[HostDeadline] = []
    for slot in range(admitted.count):
        host = Host(
            f"host-{slot}",
            HostArgs(
                admitted=admitted,
                slot=slot,
                subnet=network.subnets[admitted.placement.zones[slot]],
                security_group=access.security_group,
                key_name=access.key_name,
                profile=identity.profile,
                placement_group=together,
                hooks=hooks.of_host(slot),
                protect=not released,
                after=after,
            ),
            opts,
        )
        schedule = HostDeadline(
            f"deadline-{slot}",
            HostDeadlineArgs(
                admitted=admitted,
                slot=slot,
                instance_id=host.instance.id,
                group=deadlines.group,
                role_arn=deadlines.role_arn,
                bucket=bucket.name,
                on_failure=hooks.on_error,
            ),
            opts,
        )
        hosts.append(host)
        schedules.append(schedule)
        after = [*after, host, schedule]
    if not released:
        _gate(wiring, first, hosts, after, released)
    pulumi.export(OUTPUT, _outputs(admitted, access, deadlines, hosts, schedules, released))


def _gate(
    wiring: Wiring,
    first: pulumi.Stash,
    hosts: Sequence[Host],
    after: Sequence[pulumi.Resource],
    released: bool,
) -> pulumi.Stash:
    return gate(
        admitted=wiring.admitted,
        sealed_by=first,
        instance_ids=[host.instance.id for host in hosts],
        after=after,
        preserved=wiring.preserved,
        released=released,
    )


def _outputs(
    admitted: AdmittedFleet,
    access: Access,
    deadlines: Deadlines,
    hosts: Sequence[Host],
    schedules: Sequence[HostDeadline],
    released: bool,
) -> pulumi.Output[str]:
    def text(known: dict[str, Any]) -> str:
        outputs = StackOutputs(
            fleet=admitted.fleet,
            region=admitted.region,
            deadline_utc=admitted.deadline_utc,
            bucket=admitted.bucket,
            prefix=admitted.prefix,
            security_group=known["group"],
            schedule_group=known["deadlines"],
            schedules=tuple(known["schedules"]),
            hosts=tuple(
                StackHost(
                    slot=slot,
                    instance_id=one["id"],
                    type=admitted.placement.type,
                    zone=admitted.placement.zones[slot],
                    private_address=one["private"],
                    public_address=one["public"],
                )
                for slot, one in enumerate(known["hosts"])
            ),
            gate="released" if released else "armed",
        )
        return contract.canonical(outputs.to_json()).decode()

    each = [
        {"id": one.id, "private": one.private_ip, "public": one.public_ip}
        for one in (host.instance for host in hosts)
    ]
    return pulumi.Output.all(
        group=access.security_group,
        deadlines=deadlines.group,
        schedules=[schedule.schedule for schedule in schedules],
        hosts=each,
    ).apply(text)
