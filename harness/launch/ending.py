"""Ending a fleet's hosts: found by tag, by the journal and by the engine, ended one by one."""

from __future__ import annotations

from collections.abc import Iterable

from harness.cloud import observe, terminate
from harness.cloud.clients import Aws
from harness.cloud.seen import SeenInstance
from harness.fleet.admitted import AdmittedFleet
from harness.journal import Journal
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

    Hosts are found by tag; `known` and the journal's ids are ended too, whatever the tags say.
    What it does is in the journal: an intent with the ids, an outcome with how and when. Raises
    Waiting while a host or volume is not gone; the same call goes on.
    """
    shown = seen(aws, admitted)
    alive = {host.id: host for host in living(shown)}
    gone = {host.id for host in shown if host.terminated}
    unseen = {*known, *record.launched_ids(journal.entries)} - set(alive) - gone
    ids = [*alive, *sorted(each for each in unseen if not _recorded_gone(journal, each))]
    if not ids:
        return EndedHosts(hosts=(), volumes=())
    volumes = [volume for host in alive.values() for volume in host.volumes]
    key = record.next_key(record.END, admitted, journal.entries, "hosts")
    journal.append("intent", key, {"hosts": ids, "volumes": volumes})
    hosts = terminate.ended_or_raise(terminate.end_hosts(aws, ids))
    outcome = EndedHosts(hosts=hosts, volumes=terminate.follow_volumes(aws, volumes))
    journal.append("outcome", key, outcome.to_json())
    return outcome


def volumes_left(aws: Aws, journal: Journal) -> tuple[terminate.GoneVolume, ...]:
    """Follow the volumes of ends that were begun and not finished (killed in between)."""
    done = {e.key for e in journal.entries if e.kind == "outcome"}
    left = [
        str(volume)
        for e in journal.entries
        if e.kind == "intent" and e.key.startswith(f"{record.END}/") and e.key not in done
        for volume in e.data["volumes"]
    ]
    return terminate.follow_volumes(aws, left) if left else ()


def _recorded_gone(journal: Journal, instance_id: str) -> bool:
    return any(
        host["id"] == instance_id
        for e in journal.entries
        if e.kind == "outcome" and e.key.startswith(f"{record.END}/")
        for host in e.data["hosts"]
    )
