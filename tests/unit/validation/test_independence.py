"""The second code path shares nothing with the first."""

import ast
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
VALIDATION = sorted((ROOT / "harness" / "validation").glob("*.py"))
ROOMS = [ROOT / "harness" / room for room in ("inputs", "scoring", "tasks")]
CHECKED = [path for room in ROOMS for path in room.glob("*.py")]
SHORT = 24
"""Lines of so few characters say nothing of their own."""
ALLOWED = {"tokenizers", "trainer.contract", "harness.plan"}


def imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            found.add(str(node.module))
    return found


def lines(path: Path) -> set[str]:
    """Lines with something of their own in them."""
    kept = {line.strip() for line in path.read_text().splitlines()}
    kept = {line for line in kept if not line.startswith(("from ", "import "))}
    return {line for line in kept if len(line) > SHORT}


def test_only_the_standard_library_tokenizers_the_contract_and_the_plan_are_imported() -> None:
    for path in VALIDATION:
        others = {
            name
            for name in imports(path)
            if name.split(".")[0] not in sys.stdlib_module_names
            and not name.startswith("harness.validation")
        }
        assert others <= ALLOWED, path.name


def test_nothing_that_is_checked_imports_the_checks() -> None:
    for path in CHECKED:
        assert not {name for name in imports(path) if name.startswith("harness.validation")}


def test_no_line_is_shared_with_what_is_checked() -> None:
    theirs = {line for path in CHECKED for line in lines(path)}
    for path in VALIDATION:
        assert not lines(path) & theirs, path.name
