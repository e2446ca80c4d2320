"""Scripts to run from the repository's root, as python -m examples.quickstart."""

import sys

# in an installed kit, by that name too
sys.modules.setdefault("examples", sys.modules[__name__])
