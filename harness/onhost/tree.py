"""Small questions about a host: `tree hash DIR`, `tree port ADDRESS` (a free TCP port),
`tree root FILE` (the parameter root of a safetensors file)."""

from __future__ import annotations

import argparse
import socket
import struct
import sys
from pathlib import Path

from harness.onhost.command import Fault, run_program
from trainer import contract


def main(arguments: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="tree")
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("hash").add_argument("folder", type=Path)
    verbs.add_parser("port").add_argument("address")
    verbs.add_parser("root").add_argument("file", type=Path)
    chosen = parser.parse_args(arguments)
    if chosen.verb == "hash":
        shown: dict[str, object] = {"sha256": contract.tree_hash(chosen.folder)}
    elif chosen.verb == "root":
        shown = {"root": _root(chosen.file)}
    else:
        with socket.socket() as one:
            one.bind((chosen.address, 0))
            shown = {"port": one.getsockname()[1]}
    sys.stdout.write(contract.canonical(shown).decode() + "\n")
    return 0


def _root(file: Path) -> str:
    """The parameter root. Raises Fault when the file is no safetensors file."""
    try:
        return contract.parameter_root(file)
    except (ValueError, KeyError, TypeError, struct.error) as error:
        raise Fault(f"{file.name} is no whole safetensors file ({error}).") from None


if __name__ == "__main__":
    run_program(main)
