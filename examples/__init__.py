"""Scripts to run from the repository's root, as python -m examples.quickstart."""
