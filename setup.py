"""What is packaged, read from the core's tuple MODULES: setup.cfg has the rest.

Installed, all modules are the package grassmann_sc, whose __init__.py is the core: type
checkers find grassmann_sc.learn in a folder alone, and names such as "learn" and
"kernels" belong to other distributions. The application is a package of its own. What
else lies beside them is not packaged.
"""

import ast
from pathlib import Path

CORE = "grassmann_sc"
APPLICATION = "grassmann_classify"
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


def setup_both():
    """Build what setuptools is asked for."""
    import setuptools
    from setuptools.command.build_py import build_py

    class Build(build_py):
        """Modules go into the package grassmann_sc, but for an editable install.

        That finds them here.
        """

        def find_modules(self):
            if self.editable_mode:
                return super().find_modules()
            return [
                (*placed(name), str(path)) for name, path in modules(Path()).items()
            ]

        def run(self):
            super().run()
            if not self.editable_mode:
                Path(self.build_lib, CORE, "py.typed").touch()

    setuptools.setup(
        packages=[APPLICATION], py_modules=[CORE], cmdclass={"build_py": Build}
    )


def placed(name):
    """(package, module) of a module that is installed: the core is what its package is."""
    package, _, module = f"{CORE}.{name}".rpartition(".")
    return (CORE, "__init__") if name == CORE else (package, module)


if __name__ == "__main__":
    setup_both()
