"""Ending a fleet's hosts: found by tag, by the journal and by the engine, ended one by one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

from harness.cloud import observe, terminate
from harness.cloud.clients import Aws
from harness.cloud.seen import SeenInstance
from harness.fleet.admitted import AdmittedFleet
from harness.journal import Entry, Journal
from harness.launch import record
from harness.strict import Model


class EndedHosts(Model):
    """Outcome of ending hosts and following their volumes."""

    hosts: tuple[terminate.EndedHost, ...]
    volumes: tuple[terminate.GoneVolume, ...]


def seen(aws: Aws, admitted: AdmittedFleet) -> tuple[SeenInstance, ...]:
    """Every host of the fleet that AWS shows, gone ones too."""
    return observe.instances_of_fleet(aws, admitted.fleet)


def living(hosts: Iterable[SeenInstance]) -> tuple[SeenInstance, ...]:
    """Those that AWS does not call terminated."""
    return tuple(host for host in hosts if not host.terminated)


def end_all(
    aws: Aws, admitted: AdmittedFleet, journal: Journal, *, known: Iterable[str] = ()
) -> EndedHosts:
    """End every host of the fleet and follow its volumes until AWS says NotFound.

    Hosts are found by tag; `known` and the journal's ids are ended too, whatever the tags say. What
    is gone already and has no outcome yet (a process was killed in between, a deadline fired) gets
    one. What it does is in the journal: an intent with the ids, an outcome with how and when.
    Raises Waiting while a host or volume is not gone; the same call goes on.
    """
    asked, done = _named(journal.entries, "intent"), _named(journal.entries, "outcome")
    shown = {host.id: host for host in seen(aws, admitted)}
    alive = [each for each, host in shown.items() if not host.terminated]
    named = (*shown, *sorted({*known, *record.launched_ids(journal.entries), *asked.hosts}))
    ids = list(dict.fromkeys(e for e in named if e in alive or e not in done.hosts))
    volumes = [volume for each in alive for volume in shown[each].volumes]
    volumes = list(dict.fromkeys((*volumes, *sorted(asked.volumes - done.volumes))))
    if not ids and not volumes:
        return EndedHosts(hosts=(), volumes=())
    key = record.next_key(record.END, admitted, journal.entries, "hosts")
    journal.append("intent", key, {"hosts": ids, "volumes": volumes})
    hosts = terminate.ended_or_raise(terminate.end_hosts(aws, ids))
    outcome = EndedHosts(hosts=hosts, volumes=terminate.follow_volumes(aws, volumes))
    journal.append("outcome", key, outcome.to_json())
    return outcome


class _Named(NamedTuple):
    """Ids in the journal's entries of ending."""

    hosts: frozenset[str]
    volumes: frozenset[str]


def _named(entries: list[Entry], kind: Literal["intent", "outcome"]) -> _Named:
    ends = [e.data for e in entries if e.kind == kind and e.key.startswith(f"{record.END}/")]
    if kind == "intent":
        hosts = [str(each) for data in ends for each in data["hosts"]]
        return _Named(frozenset(hosts), frozenset(str(v) for data in ends for v in data["volumes"]))
    volumes = frozenset(str(each["id"]) for data in ends for each in data["volumes"])
    return _Named(record.ended_ids(entries), volumes)
