"""Facts, samples and the link; and what the pushed folder may import."""

from __future__ import annotations

import ast
import json
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.hosts.protocol import HostFacts
from harness.onhost import link, sample
from harness.onhost.command import Fault
from trainer import contract

ROOT = Path(__file__).resolve().parents[3]
ONHOST = ROOT / "harness" / "onhost"


def imported(path: Path) -> set[str]:
    """Every module that a file imports when it runs, functions included."""
    found = set()
    tree = ast.parse(path.read_text())
    for top in tree.body:
        if isinstance(top, ast.If) and ast.unparse(top.test) == "TYPE_CHECKING":
            top.body = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


@pytest.mark.parametrize("path", sorted(ONHOST.glob("*.py")), ids=lambda path: path.name)
def test_the_helper_imports_the_standard_library_boto3_and_the_contract(path: Path) -> None:
    for name in imported(path):
        top = name.partition(".")[0]
        allowed = top in sys.stdlib_module_names or top in ("boto3", "botocore")
        assert allowed or name.startswith(("harness.onhost", "trainer.contract")), name


@pytest.mark.parametrize("path", sorted(ONHOST.glob("*.py")), ids=lambda path: path.name)
def test_boto3_is_imported_where_it_is_needed(path: Path) -> None:
    for node in ast.parse(path.read_text()).body:
        assert "boto" not in ast.unparse(node).partition("\n")[0] or not isinstance(
            node, (ast.Import, ast.ImportFrom)
        )


def test_the_pushed_copy_runs_alone_without_any_installed_package(tmp_path: Path) -> None:
    shutil.copytree(ONHOST, tmp_path / "harness" / "onhost")
    shutil.copy(ROOT / "harness" / "__init__.py", tmp_path / "harness")
    (tmp_path / "trainer").mkdir()
    for name in ("__init__.py", "contract.py"):
        shutil.copy(ROOT / "trainer" / name, tmp_path / "trainer")
    for module in sorted(path.stem for path in ONHOST.glob("*.py") if path.stem != "__init__"):
        argv = [sys.executable, "-S", "-c", f"import harness.onhost.{module}"]
        done = subprocess.run(argv, env={"PYTHONPATH": str(tmp_path)}, capture_output=True)
        assert done.returncode == 0, done.stderr


def test_facts_are_a_host_facts(kit: Any, tmp_path: Path) -> None:
    done = kit.helper("facts", "--name", "host-7", "--folder", tmp_path)
    facts = HostFacts.model_validate_json(done.stdout, strict=True)
    assert facts.name == "host-7" and facts.cpus > 0 and facts.disk_free_bytes > 0


def test_samples_until_the_job_ends_and_the_last_one_is_taken_then(
    kit: Any, tmp_path: Path
) -> None:
    parent = kit.job("sleep", "4")
    kit.start(parent)
    out = tmp_path / "samples.jsonl"
    done = kit.helper(
        "sample", "--out", out, "--every", "0.2", "--interface", "lo", "--job", parent
    )
    assert done.returncode == 0, done.stderr
    rows = contract.read_lines(out)
    assert len(rows) >= 3
    assert [row["utc"] for row in rows] == sorted(row["utc"] for row in rows)
    assert {"cpu_busy_s", "memory_available_bytes", "sent_bytes", "gpus"} <= set(rows[0])


def test_samples_until_the_stop_file(kit: Any, tmp_path: Path) -> None:
    out, stop = tmp_path / "samples.jsonl", tmp_path / "stop"
    folder = kit.job(
        *("env", f"PYTHONPATH={ROOT}"),
        *kit.command("sample", "--out", out, "--every", 0.1, "--interface", "lo", "--stop", stop),
    )
    kit.start(folder)
    while not out.exists() or not out.read_bytes():
        pass
    stop.touch()
    assert kit.wait(folder, limit_s=5)["exit_code"] == 0


def test_a_job_over_its_traffic_cap_is_ended(kit: Any, tmp_path: Path) -> None:
    program = "import socket\nwhile 1: socket.socket(2, 2).sendto(bytes(9000), ('127.0.0.1', 9))"
    parent = kit.job(sys.executable, "-c", program)
    kit.start(parent)
    out = tmp_path / "samples.jsonl"
    capped = ("--job", parent, "--cap-bytes", 100000)
    kit.helper("sample", "--out", out, "--every", "5", "--interface", "lo", *capped)
    assert kit.wait(parent)["reason"] == "traffic cap of 100000 bytes"
    rows = contract.read_lines(out)
    assert rows[-1]["sent_bytes"] - rows[0]["sent_bytes"] > 100000


def test_an_interface_that_is_not_there_is_named(kit: Any) -> None:
    with pytest.raises(Fault, match="no network interface 'nope0'"):
        sample.traffic("nope0")


def test_the_link_is_measured_within_its_bounds(kit: Any, wait_until: Callable[..., Any]) -> None:
    folder = kit.job(
        *("env", f"PYTHONPATH={ROOT}"),
        *kit.command("link", "serve", "--address", "127.0.0.1", "--seconds", 10),
    )
    kit.start(folder)
    wait_until(lambda: (folder / "log").read_bytes().endswith(b"\n"))
    port = json.loads((folder / "log").read_text())["port"]
    bounds = ("--bytes", 20_000_001, "--seconds", 5)
    done = kit.helper("link", "measure", "--address", "127.0.0.1", "--port", port, *bounds)
    found = json.loads(done.stdout)
    assert found["bytes"] == 20_000_001
    assert 0 < found["round_trip_s"] < 0.1
    assert found["bits_per_s"] > 1e8
    assert kit.wait(folder)["exit_code"] == 0


def test_a_link_ends_after_its_seconds(kit: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(10)
        peer = threading.Thread(target=link.serve, args=(listener,))
        peer.start()
        port = listener.getsockname()[1]
        found = link.measure("127.0.0.1", port, limit_bytes=1 << 50, limit_s=0.2)
        peer.join()
    assert found["seconds"] < 3


def test_nobody_at_the_other_end_is_one_sentence(kit: Any) -> None:
    done = kit.helper("link", "measure", "--address", "127.0.0.1", "--port", 9)
    assert done.returncode == 2 and done.stderr.startswith("the link to 127.0.0.1:9 cannot be")
    done = kit.helper("link", "serve", "--address", "127.0.0.1", "--seconds", 0.1)
    assert done.returncode == 4 and "no peer measured the link" in done.stderr
