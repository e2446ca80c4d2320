"""The stress tests, which `make stress` runs: hostile inputs and long searches. Each
draws its cases by hypothesis; --hypothesis-seed draws others, -k chooses tests.
"""

import pytest


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory):
    """Each file of tests works in a folder of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MPLBACKEND", "agg")
        patch.chdir(tmp_path_factory.mktemp("stress"))
        yield
