"""What is packaged, read from the core's tuple MODULES: setup.cfg has the rest.

Installed, the core stays one module and the others become the package grassmann_sc_kit, because
names such as "learn" and "kernels" belong to other distributions; the core finds them there: from
grassmann_sc import learn. What else lies beside them is not packaged.
"""

import ast
import re
from pathlib import Path

CORE = "grassmann_sc"
KIT = "grassmann_sc_kit"
HERE = Path(__file__).resolve().parent


def modules(here=HERE):
    """{module: its file}: the core, and what its tuple MODULES names."""
    tree = ast.parse((here / f"{CORE}.py").read_text(encoding="utf-8"))
    names, = (ast.literal_eval(node.value) for node in tree.body
              if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "MODULES")
    return {name: here / f"{name.replace('.', '/')}.py" for name in (CORE, *names)}


def command(here=HERE):
    """Names of the examples that the installed command runs: what command.py imports, and so on."""
    found = ["command"]
    for name in found:  # grows
        text = (here / "examples" / f"{name}.py").read_text(encoding="utf-8")
        found += set(re.findall(r"from examples(?:\.| import )(\w+)", text)) - set(found)
    return found


if __name__ == "__main__":
    from setuptools import setup

    packaged = [*modules(), "examples.__init__", *(f"examples.{name}" for name in command())]
    setup(package_dir={KIT: "."},
          py_modules=[CORE, *(f"{KIT}.{name}" for name in sorted(packaged) if name != CORE)])
