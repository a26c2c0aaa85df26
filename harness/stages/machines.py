"""What is looked at on real machines only: routes, network allowances and read-ahead."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import Literal

from harness import jobs
from harness.hosts.protocol import Host
from harness.receipts import Allowance, Line
from harness.strict import build
from harness.study import Study
from trainer import contract

EXCEEDED = "allowance exceeded on"
IDLE_GPU_MIB = 1024
"""A driver without any process may hold some hundred MiB; a model left there holds more."""


def route_lines(study: Study, hosts: tuple[Host, ...]) -> Iterator[Line]:
    """The route from every host to every peer. Local: nothing."""
    if study.fleet_kind == "local":
        return
    for host in hosts:
        for peer in hosts:
            if peer.name != host.name:
                yield _route(host, peer, jobs.route(host, peer))


def _route(host: Host, peer: Host, way: dict[str, str]) -> Line:
    looped = way["interface"] == "lo" and not _is_loopback(peer.address)
    return Line(
        host=host.name,
        check=f"route to {peer.name}",
        observed=f"{way['interface']} from {way['source']}",
        required="not the loopback",
        ok=not looped,
    )


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def allowances(study: Study, host: Host, fleet: tuple[Host, ...]) -> Iterator[Allowance]:
    """Allowance counters of every interface that leads to a peer. Local: nothing."""
    if study.fleet_kind == "local":
        return
    peers = [peer for peer in fleet if peer.name != host.name]
    for interface in sorted({jobs.route(host, peer)["interface"] for peer in peers}):
        done = host.helper("machine", "counters", interface, timeout_s=60)
        seen = {"host": host.name, "interface": interface, **contract.parse(done.stdout)}
        yield build(Allowance, seen, where=f"{host.name}: counters of {interface}")


def allowance_line(seen: Allowance) -> Line:
    """The counters as they stand."""
    told = ", ".join(f"{name} {value}" for name, value in sorted(seen.counters.items()))
    return Line(
        host=seen.host,
        check=f"allowance counters of {seen.interface}",
        observed=told or f"none: {seen.why}",
        required="recorded",
        ok=True,
    )


def exceeded_line(before: tuple[Allowance, ...], now: Allowance) -> Line:
    """What was added to an interface's counters since `before`; any addition is said.

    Counters that are smaller than before began again (a reboot) and count whole.
    """
    known = next(
        (b.counters for b in before if (b.host, b.interface) == (now.host, now.interface)), {}
    )
    added = {}
    for name, value in sorted(now.counters.items()):
        earlier = known.get(name, 0)
        added[name] = value - earlier if value >= earlier else value
    told = ", ".join(f"{name} +{value}" for name, value in added.items())
    return Line(
        host=now.host,
        check=f"{EXCEEDED} {now.interface}",
        observed=told or f"not known: {now.why}",
        required="nothing added since preflight" if added else "recorded",
        ok=not any(added.values()),
    )


def read_ahead(study: Study, host: Host, use: Literal["training", "staging"]) -> Line:
    """Read-ahead of the disk under the work folder, read back; a local worker's is only named.

    It is set on the stack's hosts, whose disks are ours, and left alone on a user's own machine.
    """
    aws = study.plan.hosts.aws
    kib = 0
    if aws is not None and study.fleet_kind == "stack":
        kib = getattr(aws.read_ahead, f"{use}_kib")
    words = ["read-ahead", "--folder", host.work, *(["--set", str(kib)] if kib else [])]
    seen = contract.parse(host.helper("machine", *words, timeout_s=60).stdout)
    left = "" if kib else "left as it is: the machine is not ours"
    why = "; ".join(each for each in (left, seen["why"]) if each)
    return Line(
        host=host.name,
        check=f"read-ahead in {use}",
        observed=f"{seen['kib']} KiB" + (f" ({why})" if why else ""),
        required=f"{kib} KiB" if kib else "recorded",
        ok=not kib or seen["kib"] == kib,
    )


def gpu_memory_lines(hosts: tuple[Host, ...]) -> Iterator[Line]:
    """Whether every GPU is as good as empty before an attempt; nothing for a host without any."""
    for host in hosts:
        seen = contract.parse(host.helper("machine", "gpus", timeout_s=60).stdout)["used_mib"]
        if seen:
            yield Line(
                host=host.name,
                check="GPU memory",
                observed=", ".join(f"{used} MiB" for used in seen) + " in use",
                required=f"at most {IDLE_GPU_MIB} MiB in use",
                ok=max(seen) <= IDLE_GPU_MIB,
            )


def read_ahead_lines(
    study: Study, hosts: tuple[Host, ...], use: Literal["training", "staging"]
) -> tuple[Line, ...]:
    """One line a host; workers of this computer share its disk with everything else: none."""
    if study.fleet_kind == "local":
        return ()
    return tuple(read_ahead(study, host, use) for host in hosts)
