"""Build a trainer's environment from its hash-pinned requirement file, once per hash.

`python -m harness.onhost.environment build --requirements FILE --folder DIR` prints
`{"python", "manifest": {distribution: version}, "built"}`; `describe` prints the same for the
Python that runs it (an environment as found).
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from trainer import contract

READY = "harness-environment.json"


def build(requirements: Path, folder: Path) -> dict[str, Any]:
    """Make the environment, or find it whole. An unfinished one is removed and made again."""
    digest, _ = contract.hash_file(requirements)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.parent / f".{folder.name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        ready = folder / READY
        if ready.exists():
            known: dict[str, Any] = contract.read_json(ready)
            if known["requirements_sha256"] == digest:
                return {**known, "built": False}
        if folder.exists():
            shutil.rmtree(folder)
        python = folder / "bin" / "python3"
        _make(folder, requirements, python)
        known = {
            "requirements_sha256": digest,
            "python": str(python),
            "manifest": _manifest(python),
        }
        contract.write_json(ready, known)
        return {**known, "built": True}


def _make(folder: Path, requirements: Path, python: Path) -> None:
    uv = _uv()
    if uv is not None:
        _run([uv, "venv", "-q", "--python", sys.executable, str(folder)])
        _run([uv, "pip", "install", "-q", "--python", str(python), "--require-hashes", "-r",
              str(requirements)])  # fmt: skip
        return
    _run([sys.executable, "-m", "venv", str(folder)])
    _run([str(python), "-m", "pip", "install", "-q", "--require-hashes", "-r", str(requirements)])


def _uv() -> str | None:
    beside = Path(sys.executable).with_name("uv")
    return str(beside) if beside.exists() else shutil.which("uv")


def _run(argv: list[str]) -> None:
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        words = (done.stderr.strip() or done.stdout.strip()).splitlines()
        sys.exit(f"{Path(argv[0]).name} failed: {' '.join(words[-3:])[:600]}")


def _manifest(python: Path) -> dict[str, str]:
    done = subprocess.run(
        [str(python), str(Path(__file__).resolve()), "list"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    )
    if done.returncode:
        sys.exit(f"the new environment does not run: {done.stderr.strip()[-300:]}")
    found: dict[str, str] = json.loads(done.stdout)
    return found


def installed() -> dict[str, str]:
    """Every installed distribution and its version, by name."""
    return {
        name: each.version
        for each in metadata.distributions()
        if (name := each.metadata["Name"]) is not None
    }


def main(arguments: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="environment")
    verbs = parser.add_subparsers(dest="verb", required=True)
    maker = verbs.add_parser("build")
    maker.add_argument("--requirements", type=Path, required=True)
    maker.add_argument("--folder", type=Path, required=True)
    verbs.add_parser("describe")
    verbs.add_parser("list")
    chosen = parser.parse_args(arguments)
    if chosen.verb == "build":
        shown: dict[str, Any] = build(chosen.requirements, chosen.folder)
    elif chosen.verb == "describe":
        shown = {"python": sys.executable, "manifest": installed(), "built": False}
    else:
        shown = installed()
    sys.stdout.write(contract.canonical(shown).decode() + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
