"""`harness` with a shortened clock for silent ranks: hurried.py SECONDS ARGUMENTS..."""

from __future__ import annotations

import sys

from harness import heartbeats
from harness.cli import main as cli

heartbeats.STALL_LIMIT_S = float(sys.argv[1])
sys.argv = ["harness", *sys.argv[2:]]
cli.main()
