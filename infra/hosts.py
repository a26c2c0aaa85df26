"""The hosts: one after the other, each with its outer deadline before the next is launched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi
from pulumi_aws import ec2

from harness.fleet.admitted import AdmittedFleet
from harness.fleet.tags import tags
from infra.user_data import user_data


@dataclass(frozen=True)
class HostArgs:
    """One slot and all that its host stands on."""

    admitted: AdmittedFleet
    slot: int
    subnet: pulumi.Output[str]
    security_group: pulumi.Output[str]
    key_name: pulumi.Output[str]
    profile: pulumi.Output[str]
    placement_group: pulumi.Output[str] | None
    hooks: pulumi.ResourceHookBinding
    protect: bool
    after: Sequence[pulumi.Resource]
    """What must stand before this host costs anything."""


class Host(pulumi.ComponentResource):
    """One instance."""

    instance: ec2.Instance

    def __init__(self, name: str, args: HostArgs, opts: pulumi.ResourceOptions) -> None:
        super().__init__("harness:infra:Host", name, None, opts)
        admitted, slot = args.admitted, args.slot
        label = tags(admitted, slot)
        self.instance = ec2.Instance(
            f"host-{slot}",
            ami=admitted.image_id,
            instance_type=admitted.placement.type,
            subnet_id=args.subnet,
            vpc_security_group_ids=[args.security_group],
            associate_public_ip_address=True,
            key_name=args.key_name,
            iam_instance_profile=args.profile,
            placement_group=args.placement_group,
            # A guest that powers off is gone, and anyone may end a host: deadlines depend on both.
            instance_initiated_shutdown_behavior="terminate",
            disable_api_termination=False,
            metadata_options={
                "http_endpoint": "enabled",
                "http_tokens": "required",
                "http_put_response_hop_limit": 1,
            },
            root_block_device={
                "volume_type": "gp3",
                "encrypted": True,
                "volume_size": admitted.volume.gib,
                "iops": admitted.volume.iops,
                "throughput": admitted.volume.throughput_mbps,
                "delete_on_termination": True,
                "tags": label,
            },
            user_data=user_data(admitted, slot),
            tags=label,
            opts=pulumi.ResourceOptions(
                parent=self,
                depends_on=[*args.after],
                hooks=args.hooks,
                protect=args.protect,
                # Never two hosts for one slot, not even while one replaces the other.
                delete_before_replace=True,
                ignore_changes=["ami", "user_data"],
                custom_timeouts=pulumi.CustomTimeouts(create="10m", delete="30m"),
            ),
        )
        self.register_outputs({"instance_id": self.instance.id})


def placement_group(
    admitted: AdmittedFleet, opts: pulumi.ResourceOptions
) -> pulumi.Output[str] | None:
    """A cluster placement group when the fleet stands in one zone and has more than one host."""
    if not admitted.one_zone or admitted.count < 2:
        return None
    group = ec2.PlacementGroup("together", strategy="cluster", tags=tags(admitted), opts=opts)
    name: pulumi.Output[str] = group.name
    return name
