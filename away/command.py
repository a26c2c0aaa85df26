"""The command line of both halves: `python -m away ...` here, `python3 away.pyz ...` there."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from away.parcels import Broken


def main(arguments: Sequence[str] | None = None) -> int:
    """0 done, 2 a sentence says what is wrong, 4 time was over and the same call goes on; else
    the status of the harness command that stopped."""
    parser = argparse.ArgumentParser(prog="away", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    for name, what in (("wheels", "list the packages that the machine lacks"),
                       ("pack", "write the parcels that go there")):  # fmt: skip
        one = verbs.add_parser(name, help=what)
        one.add_argument("plans", nargs="*", type=Path, help="plans whose seed models go along")
        one.add_argument("--there", type=Path, help="a list of the packages that the machine has")
        if name == "pack":
            one.add_argument("--into", type=Path, default=Path("parcels"))
            one.add_argument("--repository", type=Path, default=Path())
            one.add_argument("--python", default="3.12", help="the machine's Python")
            one.add_argument("--platform", default="x86_64-manylinux_2_28")
            one.add_argument("--parcel-mib", type=int, default=48)
            one.add_argument("--repository-only", action="store_true")
    one = verbs.add_parser("take", help="on the machine: keep a parcel")
    one.add_argument("parcel", type=Path)
    one.add_argument("--at", type=Path, required=True, help="the folder that holds everything")
    one = verbs.add_parser("go", help="on the machine: go on with the steps, and bring back")
    one.add_argument("--at", type=Path, required=True)
    one.add_argument("--out", type=Path, required=True, help="what comes back goes here")
    one.add_argument("--seconds", type=float, default=540.0)
    one.add_argument("--piece-mib", type=int, default=15)
    one.add_argument("steps", nargs="*", help="command lines of harness, one argument each")
    one = verbs.add_parser("unpack", help="put what came back in its place")
    one.add_argument("folder", type=Path)
    one.add_argument("--repository", type=Path, default=Path())
    given = parser.parse_args(arguments)
    try:
        return _DO[given.verb](given)
    except Broken as broken:
        print(f"away: {broken}", file=sys.stderr)
        return 2


def _wheels(given: argparse.Namespace) -> int:
    from away import pack

    for block in pack.lacking(pack.there(given.there)).values():
        print(block.splitlines()[0].rstrip(" \\"))
    for package in pack.model_packages(given.plans):
        print(package)
    return 0


def _pack(given: argparse.Namespace) -> int:
    from away.pack import pack

    made = pack(
        given.plans, given.into, repository=given.repository.resolve(), known=given.there,
        python=given.python, platform=given.platform, limit_mib=given.parcel_mib,
        repository_only=given.repository_only,
    )  # fmt: skip
    for parcel in made:
        size = sum(path.stat().st_size for path in parcel.iterdir())
        print(f"{parcel}  {size / 2**20:.1f} MiB")
    return 0


def _take(given: argparse.Namespace) -> int:
    from away.there import Machine

    whole = Machine(given.at).take(given.parcel)
    print("all parcels are here" if whole else "kept; more parcels are to come")
    return 0


def _go(given: argparse.Namespace) -> int:
    from away.there import Machine

    machine = Machine(given.at)
    status = machine.go(given.steps, seconds=given.seconds)
    machine.bring(given.out, limit_mib=given.piece_mib)
    return status


def _unpack(given: argparse.Namespace) -> int:
    from away.unpack import unpack

    for line in unpack(given.folder, given.repository.resolve()):
        print(line)
    return 0


_DO = {"wheels": _wheels, "pack": _pack, "take": _take, "go": _go, "unpack": _unpack}
