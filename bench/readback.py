"""Readback beside `aws s3 cp` to a file plus `sha256sum`, against the same nginx, in one run.

`make bench-readback [GIB=2]` prints both rates, their ratio and both peaks of memory. nginx comes
from Debian's package and the AWS command line from PyPI, each into a folder that is removed again.
Both sides read the same objects over HTTP from 127.0.0.1 in ranges; the files are in the page
cache before either starts. The order alternates; the median counts.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from trainer import contract

TOP = Path(__file__).resolve().parents[1]
BUCKET = "bench"
KEYS = {
    "AWS_ACCESS_KEY_ID": "none",
    "AWS_SECRET_ACCESS_KEY": "none",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}
CONF = """
daemon off; worker_processes {workers}; pid {folder}/pid; error_log stderr error;
events {{ worker_connections 256; }}
http {{
  access_log off; sendfile on; tcp_nopush on; keepalive_requests 100000;
  client_body_temp_path {folder}/t1; proxy_temp_path {folder}/t2; fastcgi_temp_path {folder}/t3;
  uwsgi_temp_path {folder}/t4; scgi_temp_path {folder}/t5;
  server {{ listen 127.0.0.1:{port}; root {folder}/root; }}
}}
"""


def main() -> int:
    """Prepare both sides, measure, print one JSON line and a table."""
    commands = argparse.ArgumentParser(description=__doc__)
    commands.add_argument("--gib", type=float, default=2.0, help="size of all objects together")
    commands.add_argument("--objects", type=int, default=1)
    commands.add_argument("--rounds", type=int, default=3)
    given = commands.parse_args()
    with tempfile.TemporaryDirectory(prefix="readback-") as folder:
        work = Path(folder)
        nginx, aws = _nginx(work / "nginx"), _aws(work / "aws")
        listing = _objects(work, int(given.gib * 2**30) // given.objects, given.objects)
        with _served(nginx, work) as endpoint:
            _show(_measure(work, aws, endpoint, listing, given.rounds))
    return 0


def _nginx(folder: Path) -> str:
    """nginx's program: the installed one, or Debian's package unpacked here."""
    found = shutil.which("nginx") or shutil.which("/usr/sbin/nginx")
    if found:
        return found
    folder.mkdir()
    subprocess.run(["apt-get", "-q", "download", "nginx"], cwd=folder, check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
    for package in folder.glob("*.deb"):
        subprocess.run(["dpkg", "-x", package, folder / "root"], check=True)
    return str(folder / "root/usr/sbin/nginx")


def _aws(folder: Path) -> str:
    """The AWS command line in an environment of its own."""
    venv.create(folder, with_pip=True)
    subprocess.run([folder / "bin/pip", "install", "-q", "awscli"], check=True)
    return str(folder / "bin/aws")


def _objects(work: Path, size: int, count: int) -> list[dict[str, Any]]:
    """Random objects where nginx finds them; the listing. Reading them warms the page cache."""
    place = work / "root" / BUCKET / "objects"
    place.mkdir(parents=True)
    rows = []
    for number in range(count):
        path = place / "new"
        with open(path, "wb") as handle:
            for start in range(0, size, 1 << 24):
                handle.write(os.urandom(min(1 << 24, size - start)))
        digest, _ = contract.hash_file(path)
        path.rename(place / digest)
        rows.append({"name": f"object-{number}", "sha256": digest, "bytes": size})
    return rows


@contextmanager
def _served(nginx: str, work: Path) -> Iterator[str]:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    conf = work / "nginx.conf"
    conf.write_text(CONF.format(workers=os.cpu_count(), folder=work, port=port))
    work.chmod(0o755)
    server = subprocess.Popen([nginx, "-c", str(conf), "-p", str(work), "-g", "user root;"])
    try:
        for _ in range(100):
            with socket.socket() as one:
                if one.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait()


def _measure(
    work: Path, aws: str, endpoint: str, listing: list[dict[str, Any]], rounds: int
) -> dict[str, Any]:
    contract.write_json(work / "listing.json", listing)
    place = {"kind": "s3", "bucket": BUCKET, "prefix": "", "region": "us-east-1"}
    store = json.dumps({**place, "endpoint": endpoint})
    ours = [sys.executable, "-m", "harness.onhost.readback", "--store", store, "--listing",
            str(work / "listing.json")]  # fmt: skip
    script = "set -e\n" + "".join(
        f"{aws} --endpoint-url {endpoint} s3 cp --only-show-errors "
        f"s3://{BUCKET}/objects/{row['sha256']} {work}/copy\n"
        f'test "$(sha256sum < {work}/copy)" = "{row["sha256"]}  -"\nrm {work}/copy\n'
        for row in listing
    )
    theirs = ["bash", "-c", script]
    seconds: dict[str, list[float]] = {"readback": [], "aws": []}
    memory: dict[str, int] = {"readback": 0, "aws": 0}
    for number in range(rounds):
        sides = [("readback", ours), ("aws", theirs)]
        for name, argv in sides if number % 2 == 0 else reversed(sides):
            took, peak = _timed(argv)
            seconds[name].append(took)
            memory[name] = max(memory[name], peak)
    size = sum(row["bytes"] for row in listing)
    median = {name: statistics.median(found) for name, found in seconds.items()}
    return {
        "objects": len(listing), "bytes": size, "cores": os.cpu_count(), "rounds": rounds,
        "seconds": {name: [round(one, 2) for one in found] for name, found in seconds.items()},
        "mb_per_s": {name: round(size / one / 1e6) for name, one in median.items()},
        "peak_memory_mb": {name: round(peak / 1e6) for name, peak in memory.items()},
        "ratio": round(median["aws"] / median["readback"], 2),
    }  # fmt: skip


def _timed(argv: list[str]) -> tuple[float, int]:
    """(seconds, peak resident bytes of the largest process) of a command that must succeed."""
    began = time.monotonic()
    program = (
        "import resource, subprocess, sys\n"
        "done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL)\n"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)\n"
        "sys.exit(done.returncode)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *argv],
        env={**os.environ, **KEYS, "PYTHONPATH": str(TOP)}, stdout=subprocess.PIPE, text=True,
        check=True,
    )  # fmt: skip
    return time.monotonic() - began, int(done.stdout) * 1024


def _show(found: dict[str, Any]) -> None:
    print(json.dumps(found, sort_keys=True))
    for name, words in (("readback", "harness readback"), ("aws", "aws s3 cp + sha256sum")):
        print(
            f"{words:>22}: {found['mb_per_s'][name]:>5} MB/s, "
            f"{found['peak_memory_mb'][name]:>4} MB of memory"
        )
    print(f"{'ratio':>22}: {found['ratio']:.2f}")


if __name__ == "__main__":
    sys.exit(main())
