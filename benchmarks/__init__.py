"""Scripts to run from the repository's root: make bench, or python -m benchmarks.gram and so on."""
