"""The on-host helper as one small archive, to be put on a machine before anything else is there."""

from __future__ import annotations

import io
import shlex
import tarfile
from functools import cache
from pathlib import Path

import harness
import trainer
from trainer import contract


@cache
def archive() -> tuple[str, bytes]:
    """(hash, tar.gz) of `harness.onhost` with `trainer.contract`, as this package holds them."""
    here = Path(harness.__file__).parent
    files = {
        f"harness/onhost/{path.name}": path.read_bytes()
        for path in sorted((here / "onhost").glob("*.py"))
    }
    files["trainer/contract.py"] = (Path(trainer.__file__).parent / "contract.py").read_bytes()
    files |= {"harness/__init__.py": b"", "trainer/__init__.py": b""}
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", compresslevel=6) as tar:
        for name, data in sorted(files.items()):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(data), 0o644
            tar.addfile(entry, io.BytesIO(data))
    digest = contract.hash_of({name: contract.sha256(data) for name, data in files.items()})
    return digest, out.getvalue()


def install_script(folder: str) -> str:
    """A script that unpacks the archive from its input into `folder`, whole or not at all."""
    target, parent = shlex.quote(folder), shlex.quote(str(Path(folder).parent))
    lines = (
        "set -e; umask 022",
        f"mkdir -p {parent}",
        f"part=$(mktemp -d {parent}/.helper.XXXXXX.tmp)",
        "trap 'rm -rf \"$part\"' EXIT",
        'tar -xzf - -C "$part"',
        'chmod 755 "$part"; touch "$part/.whole"',
        f'test -e {target}/.whole || {{ rm -rf {target}; mv "$part" {target}; }}',
    )
    return "\n".join(lines)
