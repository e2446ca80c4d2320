"""Measurements, to run from the repository's root, as python -m benchmarks.lasso. The
tests' oracles serve here too.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
