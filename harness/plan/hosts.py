"""Where it runs: workers on this computer, or g6e hosts on AWS with fall-backs."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from harness.plan.kinds import Count, Text
from harness.strict import Model

InstanceType = Annotated[str, StringConstraints(pattern=r"^[a-z0-9-]+\.[a-z0-9-]+$")]
Zone = Annotated[str, StringConstraints(pattern=r"^[a-z]{2}-[a-z]+-[0-9][a-z]$")]
Region = Annotated[str, StringConstraints(pattern=r"^[a-z]{2}(-[a-z]+)+-[0-9]$")]


class LocalHosts(Model):
    """Worker processes on this computer (`--local`)."""

    count: Annotated[int, Field(ge=1, le=16)]
    device: Literal["cpu", "cuda", "auto"] = "auto"
    """auto: CUDA when every worker of the largest arm has a GPU of its own, else CPU."""
    transport: Literal["gloo"] | None = None
    """What carries exchanges. Absent: NCCL between GPUs, gloo between CPUs. With gloo they go
    through host memory, and workers may share a GPU: numerics count then, speed does not."""
    threads: Count | None = None
    """CPU threads a worker; absent: this computer's cores divided by the arm's workers."""


class ReadAhead(Model):
    """Root-device read-ahead in KiB."""

    training_kib: Count
    staging_kib: Count


class Volume(Model):
    """Encrypted gp3 root volume."""

    gib: Count
    iops: Annotated[int, Field(ge=3000, le=16000)]
    throughput_mbps: Annotated[int, Field(ge=125, le=1000)]
    """MB/s."""


class AwsHosts(Model):
    """GPU hosts that Pulumi provisions. Types and zones are tried in order, whole fleet at once."""

    region: Region
    count: Annotated[int, Field(ge=1, le=16)]
    types: Annotated[tuple[InstanceType, ...], Field(min_length=1)]
    zones: Annotated[tuple[Zone, ...], Field(min_length=1)]
    placement: Literal["one-zone", "spread"]
    """one-zone uses a cluster placement group; spread takes the zones in turn."""
    network: Literal["own", "default"]
    image: Text
    """Deep Learning AMI type, resolved once and pinned at admission."""
    volume: Volume
    read_ahead: ReadAhead


class Hosts(Model):
    """The fleets that this plan may run on."""

    local: LocalHosts | None = None
    aws: AwsHosts | None = None


class FolderStore(Model):
    """A folder of objects by hash."""

    kind: Literal["folder"]
    path: Text | None = None
    """Relative to the plan file; absent: runs/store."""


class S3Store(Model):
    """A prefix of a bucket; absent bucket: the stack's own."""

    kind: Literal["s3"]
    bucket: Text | None = None
    prefix: Text | None = None


StoreChoice = Annotated[FolderStore | S3Store, Field(discriminator="kind")]
