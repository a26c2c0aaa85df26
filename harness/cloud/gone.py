"""The cloud's own proof that a host and its disk are gone."""

from __future__ import annotations

from collections.abc import Sequence

from harness.cloud import observe
from harness.cloud.clients import Aws
from harness.errors import Refused


def proof_of_loss(aws: Aws, instance_id: str, volumes: Sequence[str]) -> str:
    """DescribeInstances says 'terminated', and DescribeVolumes NotFound for every disk it had.

    `volumes` are those that were seen on it while it lived. Raises Refused with what AWS says
    instead; an instance that is not shown is unknown, not gone.
    """
    seen = observe.instances_by_id(aws, [instance_id])[instance_id]
    if seen is None or not seen.terminated:
        state = "does not show it" if seen is None else f"says '{seen.state}'"
        raise Refused(f"AWS {state}, which is no proof that it is gone", where=instance_id)
    disks = tuple(dict.fromkeys((*volumes, *seen.volumes)))
    if not disks:
        raise Refused("no disk of it is known, so none is known to be gone", where=instance_id)
    for disk in disks:
        if observe.volume(aws, disk) is not None:
            raise Refused(f"its disk {disk} is still there", where=instance_id)
    reason = f": {seen.reason}" if seen.reason else ""
    return (
        f"AWS at {seen.seen_utc}: {instance_id} is terminated{reason}; {', '.join(disks)} NotFound"
    )
