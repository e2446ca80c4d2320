"""The command grassmann-classify of an installed kit: examples/classify.py from anywhere."""

import sys


def classify():
    """Run the script, whose modules are then those of the kit."""
    sys.modules.setdefault("examples", sys.modules[__package__])
    from examples.options import of_classify

    of_classify(sys.argv[1:], "grassmann-classify")  # --help and mistakes, before slow imports
    from examples.classify import main

    main(sys.argv[1:])
