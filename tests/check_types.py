"""mypy on the modules' type hints (make types), under the names by which modules are
imported.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from docs.sources import CORE, ROOT, modules


def copy_as_package(folder):
    """To mypy grassmann_sc.learn is a file of a package, so the flat files are copied
    into one.
    """
    shutil.rmtree(folder, ignore_errors=True)
    for name, path in modules().items():
        to = folder / ("__init__.py" if name == CORE else path.relative_to(ROOT))
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, to)  # with its time, by which mypy knows what has changed


def main():
    package = ROOT / ".mypy_cache" / CORE  # and mypy keeps beside it what it knows
    copy_as_package(package)
    options = ["--package", CORE, "--config-file", ROOT / "pyproject.toml"]
    command = [sys.executable, "-m", "mypy", *options]
    done = subprocess.run(command, cwd=package.parent, capture_output=True, text=True)
    report = re.sub(
        rf"^{CORE}[/\\]__init__\.py", f"{CORE}.py", done.stdout, flags=re.MULTILINE
    )
    print(
        re.sub(rf"^{CORE}[/\\]", "", report, flags=re.MULTILINE) + done.stderr, end=""
    )
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
