"""The command grassmann-classify, which runs examples/classify.py."""

import importlib.util
import sys

NAME = "grassmann-classify"
NEEDED = {"sklearn": "scikit-learn"}  # {module: package} of what only extras install


def classify():
    """Run the script, which signs its messages with the command's name."""
    from examples.options import end_in_a_line, of_classify

    end_in_a_line()
    of_classify(sys.argv[1:], NAME)  # --help and mistakes, before slow imports
    missing = [
        NEEDED[module] for module in NEEDED if importlib.util.find_spec(module) is None
    ]
    if missing:
        names = " ".join(missing)
        sys.exit(
            f"{NAME}: error: {names} is not installed: {sys.executable} -m pip install "
            f"{names}"
        )
    from examples.classify import main

    main(sys.argv[1:], NAME)
