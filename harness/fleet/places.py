"""Where a fleet's records lie in its bucket: one definition for hosts, program and operator."""

from __future__ import annotations

from harness.fleet.admitted import AdmittedFleet


def under(prefix: str, name: str) -> str:
    """Key of `name` below a prefix, which may be empty and may end in a slash."""
    return f"{prefix.strip('/')}/{name}".lstrip("/")


def fleet_folder(admitted: AdmittedFleet) -> str:
    """All of the fleet's records, ending in a slash."""
    return under(admitted.prefix, f"fleets/{admitted.fleet}/")


def objects_folder(admitted: AdmittedFleet) -> str:
    """The store's objects, ending in a slash."""
    return under(admitted.prefix, "objects/")


def host_keys(admitted: AdmittedFleet, slot: int) -> str:
    """Written once by the host: {schema, fleet, slot, instance_id, boot_id, keys: [public key]}."""
    return f"{fleet_folder(admitted)}hosts/{slot}/host_keys.json"


def ready(admitted: AdmittedFleet, slot: int) -> str:
    """Written once by the host when its set-up is done; see infra/guest/setup.sh."""
    return f"{fleet_folder(admitted)}hosts/{slot}/ready.json"


def acknowledged(admitted: AdmittedFleet, slot: int) -> str:
    """Written once the host's outer deadline exists: {schema, fleet, slot, instance_id, schedule,
    deadline_utc}. A host that does not find it within 10 minutes of its boot powers off."""
    return f"{fleet_folder(admitted)}acknowledged/{slot}"
