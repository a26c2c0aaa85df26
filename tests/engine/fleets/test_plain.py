"""Plain `pulumi` commands over infra/__main__.py itself, wired to an admission on this computer."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest

from harness.clock import Clock
from harness.fleet import engine, wiring
from harness.launch.record import launch_intents, launched_ids
from tests.engine.engine import served
from tests.engine.fleets.workshop import ALIVE, DEADLINE_S, ROOT, Workshop


def program() -> None:
    """What the language host of an installed Pulumi does with `main: infra`."""
    path = sys.path[:]
    try:
        runpy.run_path(str(ROOT / "infra" / "__main__.py"), run_name="__main__")
    finally:
        sys.path[:] = path


@pytest.fixture
def plain(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    """The program runs in this process, so that it meets the test's cloud."""
    for name, value in workshop.cloud.environment.items():
        monkeypatch.setenv(name, value)
    assert pulumi(workshop, "stack", "init", "toy").returncode == 0
    return workshop


def pulumi(
    workshop: Workshop, *words: str, programmed: bool = False
) -> subprocess.CompletedProcess[str]:
    """The plain command in the project's folder."""
    environment = {**os.environ, **workshop.environment, "PULUMI_CONFIG_PASSPHRASE": ""}
    fixed = ["--non-interactive", "--color=never"]
    if not programmed:
        return _run(workshop, [*words, *fixed], environment)
    with served(program) as address:
        return _run(workshop, [*words, "--stack=toy", f"--client={address}", *fixed], environment)


def _run(
    workshop: Workshop, words: list[str], environment: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [engine.find(ROOT), *words], cwd=workshop.folder, env=environment,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        timeout=900, check=False,
    )  # fmt: skip


UP = ("up", "--yes", "--skip-preview")
NOW = datetime.now(UTC)


def test_plain_up_asks_the_admission_and_a_changed_address_is_no_change(
    plain: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = pulumi(plain, *UP, programmed=True)
    assert refused.returncode != 0
    assert "No fleet is admitted, so nothing is launched. Next: harness admit" in refused.stdout

    plain.harness("admit").ok()
    with monkeypatch.context() as later:
        later.setattr(
            wiring, "Clock", lambda: Clock(now=lambda: NOW + timedelta(seconds=0.6 * DEADLINE_S))
        )
        late = pulumi(plain, *UP, programmed=True)
    assert late.returncode != 0
    assert "minutes are left before the deadline, too few to begin" in late.stdout
    assert "Traceback" not in refused.stdout + late.stdout
    assert plain.instances(*ALIVE) == []

    up = pulumi(plain, *UP, programmed=True)
    assert up.returncode == 0, up.stdout
    assert plain.slots(*ALIVE) == ["0", "1"]
    assert [e.data["slot"] for e in launch_intents(plain.entries)] == [0, 1]
    alive = {host["InstanceId"] for host in plain.instances(*ALIVE)}
    assert set(launched_ids(plain.entries)) == alive

    done = plain.harness("access", "--address", "203.0.113.9", "--json").ok()
    assert json.loads(done.out)["rules"] == 1
    assert plain.admitted.operator_cidr == "203.0.113.9/32"
    rules = plain.cloud.client("ec2").describe_security_group_rules()["SecurityGroupRules"]
    ssh = [rule["CidrIpv4"] for rule in rules if rule.get("FromPort") == 22 and "CidrIpv4" in rule]
    assert ssh == ["203.0.113.9/32"]
    assert (plain.folder / "Pulumi.toy.yaml").read_text().count("203.0.113.9/32") == 1
    same = pulumi(plain, "preview", "--diff", "--expect-no-changes", programmed=True)
    assert same.returncode == 0, same.stdout
    assert {host["InstanceId"] for host in plain.instances(*ALIVE)} == alive
