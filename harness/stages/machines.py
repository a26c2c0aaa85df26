"""What preflight looks at on real machines only: routes, allowances and read-ahead."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

from harness import jobs
from harness.hosts.protocol import Host
from harness.receipts import Line
from harness.study import Study
from trainer import contract


def machine_lines(study: Study, hosts: tuple[Host, ...]) -> Iterator[Line]:
    """Routes to every peer, allowance counters of their interfaces, read-ahead. Local: nothing."""
    if study.fleet_kind == "local":
        return
    for host in hosts:
        interfaces = set()
        for peer in hosts:
            if peer.name != host.name:
                way = jobs.route(host, peer)
                interfaces.add(way["interface"])
                yield _route(host, peer, way)
        for interface in sorted(interfaces):
            yield _allowance(host, interface)
        yield _read_ahead(study, host)


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


def _allowance(host: Host, interface: str) -> Line:
    seen = contract.parse(host.helper("machine", "counters", interface, timeout_s=60).stdout)
    told = ", ".join(f"{name} {value}" for name, value in sorted(seen["counters"].items()))
    return Line(
        host=host.name,
        check=f"allowance counters of {interface}",
        observed=told or f"none: {seen['why']}",
        required="recorded",
        ok=True,
    )


def _read_ahead(study: Study, host: Host) -> Line:
    """Set on the stack's hosts, whose disks are ours; only read on a user's own machine."""
    aws = study.plan.hosts.aws
    kib = aws.read_ahead.training_kib if aws and study.fleet_kind == "stack" else 0
    words = ["read-ahead", "--folder", host.work, *(["--set", str(kib)] if kib else [])]
    seen = contract.parse(host.helper("machine", *words, timeout_s=60).stdout)
    left = "" if kib else "left as it is: the machine is not ours"
    why = "; ".join(each for each in (left, seen["why"]) if each)
    return Line(
        host=host.name,
        check="read-ahead",
        observed=f"{seen['kib']} KiB" + (f" ({why})" if why else ""),
        required=f"{kib} KiB" if kib else "recorded",
        ok=not kib or seen["kib"] == kib,
    )
