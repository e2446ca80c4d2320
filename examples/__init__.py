"""Scripts to run from the repository's root: python -m examples.quickstart, python -m examples.classify --help."""
