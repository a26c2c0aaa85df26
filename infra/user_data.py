"""User data of a host, a pure function: a MIME archive for cloud-init, nothing secret in it.

Three parts, by cloud-init's own order: a boothook (runs on every boot before anything of
cloud-config) arms the deadline; cloud-config makes new host keys and forbids upgrades; a script
after the boot holds the driver's packages and publishes. Formats: cloud-init's documentation,
'User data formats'; at most 16 KB before base64 (EC2 user guide, 'Run commands at launch').
"""

from __future__ import annotations

import re
from pathlib import Path

from harness.clock import parse_utc, whole_second
from harness.errors import BadInput
from harness.fleet import places
from harness.fleet.admitted import AdmittedFleet
from trainer import contract

LIMIT_BYTES = 16 * 1024
ACKNOWLEDGE_WITHIN_S = 600
"""From boot; then a host without an acknowledged outer deadline powers off."""
GUEST = Path(__file__).parent / "guest"
_BOUNDARY = "=harness-part="
_END = "HARNESS_END_OF_FILE"
_FILES = (
    ("guard.sh", "/usr/local/sbin/harness-guard"),
    ("harness-guard.service", "/etc/systemd/system/harness-guard.service"),
    ("harness-guard.timer", "/etc/systemd/system/harness-guard.timer"),
    ("records.py", "/usr/local/sbin/harness-records"),
    ("harness-acknowledge.service", "/etc/systemd/system/harness-acknowledge.service"),
)
_CLOUD_CONFIG = """\
#cloud-config
package_update: false
package_upgrade: false
ssh_deletekeys: true
ssh_genkeytypes: [ed25519, ecdsa]
ssh:
  emit_keys_to_console: true
"""


def user_data(admitted: AdmittedFleet, slot: int) -> str:
    """The text for one host. Raises BadInput when it is too long for EC2."""
    parts = (
        ("text/cloud-boothook", f"#cloud-boothook\n#!/bin/sh\n{arming(admitted, slot)}"),
        ("text/cloud-config", _CLOUD_CONFIG),
        ("text/x-shellscript", _guest("setup.sh")),
    )
    lines = [f'Content-Type: multipart/mixed; boundary="{_BOUNDARY}"', "MIME-Version: 1.0", ""]
    for kind, text in parts:
        lines += [f"--{_BOUNDARY}", f'Content-Type: {kind}; charset="us-ascii"', "", text]
    whole = "\n".join([*lines, f"--{_BOUNDARY}--", ""])
    if len(whole.encode("ascii")) > LIMIT_BYTES:
        raise BadInput(f"user data is longer than {LIMIT_BYTES} bytes", where=admitted.fleet)
    return whole


def arming(admitted: AdmittedFleet, slot: int) -> str:
    """The shell script that arms the deadline: writes its files, enables and starts its units."""
    files = {path: guest_file(admitted, name) for name, path in _FILES}
    files = {"/etc/harness/fleet.json": _about(admitted, slot), **files}
    return _guest("arm.sh").replace("@FILES@", "\n".join(_write(*each) for each in files.items()))


def guest_file(admitted: AdmittedFleet, name: str) -> str:
    """One file of infra/guest with this fleet's deadline in its places."""
    # Rounded up: the inner deadline is never before the time that was admitted.
    moment = whole_second(parse_utc(admitted.deadline_utc))
    values = {
        "DEADLINE_EPOCH": str(int(moment.timestamp())),
        "DEADLINE_CALENDAR": moment.strftime("%Y-%m-%d %H:%M:%S UTC"),
        "DEADLINE_UTC": admitted.deadline_utc,
        "ACKNOWLEDGE_WITHIN_S": str(ACKNOWLEDGE_WITHIN_S),
    }
    return re.sub(r"@([A-Z_]+)@", lambda found: values[found[1]], _guest(name))


def _about(admitted: AdmittedFleet, slot: int) -> str:
    return contract.canonical(
        {
            "fleet": admitted.fleet,
            "slot": slot,
            "region": admitted.region,
            "bucket": admitted.bucket,
            "deadline_utc": admitted.deadline_utc,
            "host_keys": places.host_keys(admitted, slot),
            "ready": places.ready(admitted, slot),
            "acknowledged": places.acknowledged(admitted, slot),
        }
    ).decode()


def _write(path: str, text: str) -> str:
    assert _END not in text
    return f"cat > \"$root{path}\" <<'{_END}'\n{text.rstrip()}\n{_END}"


def _guest(name: str) -> str:
    return (GUEST / name).read_text(encoding="ascii")
