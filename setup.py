"""What is packaged, read from the core's tuple MODULES: setup.cfg has the rest.

Installed, all modules are the package grassmann_sc, whose __init__.py is the core: type
checkers find grassmann_sc.learn in a folder alone, and names such as "learn" and
"kernels" belong to other distributions. The command is in the package grassmann_sc_kit:
python imports a package before what is in it, and --help does not wait for the core.
What else lies beside them is not packaged.
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
    (names,) = (
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "MODULES"
    )
    return {name: here / f"{name.replace('.', '/')}.py" for name in (CORE, *names)}


def command(here=HERE):
    """Names of the examples that the installed command runs.

    What command.py imports, and so on.
    """
    found = ["command"]
    for name in found:  # grows
        text = (here / "examples" / f"{name}.py").read_text(encoding="utf-8")
        found += set(re.findall(r"from examples(?:\.| import )(\w+)", text)) - set(
            found
        )
    return found


def setup_kit():
    """Build what setuptools is asked for."""
    import setuptools
    from setuptools.command.build_py import build_py

    class Build(build_py):
        """Modules go into the package grassmann_sc, but for an editable install.

        That finds them here.
        """

        def find_modules(self):
            found = super().find_modules()
            if self.editable_mode:
                return found
            kit = [one for one in found if one[1] != CORE]
            return [
                (*placed(name), str(path)) for name, path in modules(Path()).items()
            ] + kit

        def run(self):
            super().run()
            if not self.editable_mode:
                Path(self.build_lib, CORE, "py.typed").touch()

    examples = [f"{KIT}.examples.{name}" for name in ("__init__", *sorted(command()))]
    setuptools.setup(
        package_dir={KIT: "."},
        py_modules=[CORE, *examples],
        cmdclass={"build_py": Build},
    )


def placed(name):
    """(package, module) of a module that is installed: the core is what its package is."""
    package, _, module = f"{CORE}.{name}".rpartition(".")
    return (CORE, "__init__") if name == CORE else (package, module)


if __name__ == "__main__":
    setup_kit()
