"""The small plan of the tests of inputs is used here too."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "inputs"))
