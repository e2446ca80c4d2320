"""What the first result costs: import and first gsc in fresh interpreters, with an empty cache, a
full one and none.

    python -m benchmarks.startup

There is no peer here. The folder of the files is left alone: the compiled code goes to a temporary
folder.
"""

import shutil
import tempfile
from pathlib import Path

from examples.options import of_nothing, parsed

parsed(__name__, of_nothing, "benchmarks.startup")

import numpy as np

from benchmarks.common import ROOT, figure, header, interleaved, run_child

REPETITIONS = 5
SCRIPT = """
import time
start = time.perf_counter()
import grassmann_sc as gs
imported = time.perf_counter()
X, D = gs.random_subspaces(100, 64, 3, 0), gs.random_subspaces(50, 64, 3, 1)
codes = gs.gsc(X, D, 0.1)
print(imported - start, time.perf_counter() - imported, abs(codes).sum())
"""

header("Start-up: import and gsc of 100 queries on 50 atoms, float64, fresh interpreters")
with tempfile.TemporaryDirectory() as cache:
    wall, text = run_child(SCRIPT, NUMBA_CACHE_DIR=cache)
    first_import, first_codes, total = map(float, text.split())
    figure("cold, empty cache: import (s)", first_import)
    figure("cold, empty cache: first gsc, compiled (s)", first_codes)
    figure("cold, empty cache: both, interpreter included (s)", wall, "<= 20")
    runs = [run_child(SCRIPT, NUMBA_CACHE_DIR=cache) for _ in range(REPETITIONS)]
    numpy, numba = interleaved([lambda: run_child("import numpy"),
                                lambda: run_child("import numba, scipy.sparse")], REPETITIONS)
imported, coded, again = np.median([np.float64(text.split()) for _, text in runs], axis=0)
figure(f"warm: import (s); a whole interpreter with numpy alone {numpy:.2f} s, with numba and "
       f"scipy.sparse {numba:.2f} s", imported, "<= 0.8")
figure("warm: first gsc, loaded from the cache (s)", coded)
figure("warm: script that codes 100 queries, wall (s)", np.median([wall for wall, _ in runs]),
       "<= 2")

# A folder that nobody may write to, root neither: a file stands where the cache would go, and home
# is no folder.
with tempfile.TemporaryDirectory() as name:
    folder = Path(name)
    shutil.copy(ROOT / "grassmann_sc.py", folder)
    (folder / "__pycache__").touch()
    folder.chmod(0o555)
    nowhere = {key: "/dev/null/cache" for key in ("HOME", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR",
                                                  "LOCALAPPDATA")}
    wall, text = run_child(SCRIPT, cwd=folder, **nowhere)
    written = sorted(path.name for path in folder.iterdir())
    folder.chmod(0o755)
figure("read-only copy, no cache anywhere: compiled in memory, wall (s); files there: "
       f"{', '.join(written)}", wall)
figure("sum of |codes| apart from the cached run's, cold and read-only, relative (1)",
       max(abs(total - again), abs(float(text.split()[2]) - again)) / again, "<= 1e-12")
