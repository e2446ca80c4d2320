"""Measurements, run from the repository's root, as python -m benchmarks.lasso.

They share the tests' oracles.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
