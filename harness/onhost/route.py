"""The way to a peer: `route ADDRESS` prints {interface, source} as the kernel would route to it."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
from pathlib import Path
from typing import Any

from harness.onhost.command import Fault, parser, print_json, run_program

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def route(address: str) -> dict[str, Any]:
    """{interface, source}. Raises Fault when there is no way to the address."""
    tool = shutil.which("ip", path=SYSTEM_PATH)
    if tool is None:
        return _without_tool(address)
    done = subprocess.run(
        [tool, "-j", "route", "get", address], stdin=subprocess.DEVNULL, capture_output=True,
        text=True, timeout=20,
    )  # fmt: skip
    try:
        found = json.loads(done.stdout)[0]
        return {"interface": str(found["dev"]), "source": str(found["prefsrc"])}
    except (ValueError, LookupError, TypeError):
        words = done.stderr.strip() or "it said nothing"
        raise Fault(f"there is no route to {address} ({words}).", exit_code=4) from None


def _without_tool(address: str) -> dict[str, Any]:
    """The loopback is known without iproute2; anything else is not."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect((address, 9))
            source = str(probe.getsockname()[0])
    except OSError as error:
        raise Fault(f"there is no route to {address} ({error}).", exit_code=4) from None
    if address.startswith("127."):
        return {"interface": "lo", "source": source}
    names = sorted(path.name for path in Path("/sys/class/net").iterdir() if path.name != "lo")
    if len(names) == 1:
        return {"interface": names[0], "source": source}
    raise Fault("the command 'ip' (iproute2) is missing, and there are several interfaces.")


def main() -> int:
    """The command line."""
    commands = parser(__doc__)
    commands.add_argument("address")
    print_json(route(commands.parse_args().address))
    return 0


if __name__ == "__main__":
    run_program(main)
