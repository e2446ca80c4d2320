"""Learn from labelled clips, and answer clips without labels, by coding subspaces.

    from grassmann_classify import add, fit, load, predict, save

    model = fit(sets, labels)  # arrays of frames (n_frames, height, width) or (n_frames, d)
    predict(model, new_sets).labels
    save("model.npz", model)
    model = add(load("model.npz"), more_sets, more_labels)

The command `grassmann-classify`, or `python -m grassmann_classify`, does the same with
files, compares methods, finds labels that may be wrong, and makes clusters.
"""

import importlib

_HOMES = {
    "Recipe": "settings",
    "Settings": "settings",
    "add": "learning",
    "fit": "learning",
    "load": "model_file",
    "predict": "learning",
    "save": "model_file",
}
__all__ = [*_HOMES]


def __dir__():
    return sorted({*globals(), *__all__})


def __getattr__(name):
    """Imports what is asked for: --help does not wait for the toolkit."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
