"""What tests found out and a reader of the run should see: `record_property("said", line)`."""

from __future__ import annotations

import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print each line; with several processes nothing that a test prints itself is seen."""
    for outcome in ("passed", "failed"):
        for report in terminalreporter.stats.get(outcome, []):
            for name, line in report.user_properties:
                if name == "said":
                    terminalreporter.write_line(f"== {line}")
