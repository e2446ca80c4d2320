"""The command grassmann-classify of an installed kit: examples/classify.py from anywhere."""

import sys

NAME = "grassmann-classify"


def classify():
    """Run the script, which signs what it says with the name of the command."""
    from examples.options import of_classify

    of_classify(sys.argv[1:], NAME)  # --help and mistakes, before slow imports
    from examples.classify import main

    main(sys.argv[1:], NAME)
