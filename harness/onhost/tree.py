"""Small questions about a host: `tree hash DIR`, `tree port` (a free TCP port)."""

from __future__ import annotations

import argparse
import socket
import sys
from pathlib import Path

from trainer import contract


def main(arguments: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="tree")
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("hash").add_argument("folder", type=Path)
    verbs.add_parser("port").add_argument("address")
    chosen = parser.parse_args(arguments)
    if chosen.verb == "hash":
        shown: dict[str, object] = {"sha256": contract.tree_hash(chosen.folder)}
    else:
        with socket.socket() as one:
            one.bind((chosen.address, 0))
            shown = {"port": one.getsockname()[1]}
    sys.stdout.write(contract.canonical(shown).decode() + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
