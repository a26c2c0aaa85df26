"""An installed wheel brings everything: trainer, prices, templates, passages and plans."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from harness.snapshot import write_snapshot
from trainer.contract import tree_hash

TOP = Path(__file__).parents[2]
LOOK = """
import os
from pathlib import Path
import trainer
from harness.init import shipped_plans
from harness.plan import load_plan
from harness.prices import load_prices
from harness.report.page import index_page
from harness.tasks.passages import passages
from trainer.contract import tree_hash
folder = Path(trainer.__file__).parent
assert os.access(folder / "launch", os.X_OK), "launch is not executable"
assert sorted(shipped_plans())[-1] == "quickstart", shipped_plans()
load_prices("us-east-1")
assert len(list(passages("seed", "role"))) > 100
from harness.snapshot import write_snapshot
write_snapshot(Path("programs.tar"), Path("programs"))
print(tree_hash(folder))
"""


def ran(*argv: str, folder: Path, path: str = "") -> str:
    """Run a command; its standard output."""
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(argv, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_installed_trainer_is_the_same_tree(tmp_path: Path) -> None:
    dist, target = tmp_path / "dist", tmp_path / "installed"
    ran(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(dist), folder=TOP)
    (wheel,) = dist.glob("*.whl")
    uv = str(Path(sys.executable).with_name("uv"))
    install = ("pip", "install", "-q", "--no-deps", "--target", str(target), str(wheel))
    ran(uv, *install, folder=tmp_path)
    found = ran(sys.executable, "-c", LOOK, folder=tmp_path, path=str(target))
    assert found.strip() == tree_hash(TOP / "trainer")
    write_snapshot(tmp_path / "here.tar", tmp_path / "here")
    assert (tmp_path / "programs.tar").read_bytes() == (tmp_path / "here.tar").read_bytes()
