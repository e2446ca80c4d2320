"""Recipes to choose from, and how they make rows of frames.

A recipe is what lies between a clip and its subspace: descriptor, centring, stacking.
Its name says what it is, as "centred, stack 4".
"""

import importlib.util
import itertools
import math
import threading
from dataclasses import replace

import numpy as np
import scipy.linalg
from sklearn.preprocessing import StandardScaler, maxabs_scale

from grassmann_classify.settings import MOST_P
from grassmann_sc import frames, shared, subspaces

ACRONYMS = {"hog", "lbp"}
STACK = 4  # frames
LONGER = (8, 16)  # frames, where they have at most MOST_STACKED numbers together
MOST_STACKED = 800
SMALL = 16, 16  # pixels of frames in colour
GREY = 0.05  # of the brightest: colours of a pixel that differ by less are grey
STEPS = 32  # frames, at most, to which a clip is resampled before a share is stacked
SHARES = {"half a clip": 1 / 2, "most of a clip": 7 / 8}
SMALLEST = 16  # pixels of a side of frames that descriptors are tried on
# rows are shortened if there are at most so many, and each of so many times more numbers
MOST_SHORTENED = 4000
SHORTER = 4


def recipes_of(
    plain, shape, lengths, features=None, center=None, stack=None, in_colours=False
):
    """{name: Recipe} of the candidates; None for what is to be chosen.

    Names say what they are, as "LBP" or "centred, stack 4".

    plain: the Recipe that they are variants of. shape: that of a frame; lengths: the
    numbers of rows of the sets. Images: the descriptors that frames.DESCRIPTORS suits to
    a frame, and raw pixels centred; those of what moves in stacks of 8, and of the SHARES
    of a clip that is resampled to at most STEPS / 2 frames, centred or standardised; if
    in_colours, those of frames in colour.
    Other frames, which follow each other: as they are, stacks of STACK and of the SHARES,
    resampled to STEPS, each also centred; if they are narrow, stacks of LONGER too, and
    each also standardised. A descriptor has the options of plain, or those that suit a
    frame. ValueError for descriptors of images alone where there are none.
    """
    tried = {
        name: kind
        for name, kind in frames.DESCRIPTORS.items()
        if kind.suited
        and (not kind.needs or importlib.util.find_spec(kind.needs))
        and (in_colours or not kind.colour)
    }
    images = (
        len(shape) == 2
        and min(shape) >= SMALLEST
        and plain.resample is None
        and plain.describe is None
    )
    named = features is not None
    features = features or [
        kind for kind in tried if images or kind == "raw" or tried[kind].colour
    ]
    if "raw" not in features and len(shape) != 2:
        raise ValueError(
            f"--features {features[0]} needs images, got rows of {math.prod(shape)} numbers"
        )
    recipes = {}
    for kind in features:
        moving = frames.DESCRIPTORS[kind].moving
        colour = frames.DESCRIPTORS[kind].colour
        stacks, levels = _forms(moving, images or colour, shape)
        steps = STEPS // 2 if moving else STEPS
        steps = min(plain.resample or steps, int(np.median(lengths)))
        stacks = stack or [
            m
            for m in stacks
            if m == 1 or (steps > STACK if m in SHARES else min(lengths) > m)
        ]
        if moving and named:
            stacks = stacks or [1]
        elif moving:  # in order alone
            stacks = [m for m in stacks if m != 1]
        if center is not None:
            levels = [("", "centred")[centred] for centred in center]
        elif not moving and kind != "raw":
            levels = [""]
        options = plain.feature_options
        if len(shape) == 2 and not options and kind in tried:
            options = tried[kind].suited(shape)
        for m, level in itertools.product(stacks, levels):
            stacked = [m if m in SHARES else f"stack {m}"] * (m != 1)
            words = [kind.upper() if kind in ACRONYMS else kind]
            words = words * (features != ["raw"]) + [level] * bool(level) + stacked
            length = int(steps * SHARES.get(m, 0))
            stacking = {"steps": steps, "stack": length} if length else {"stack": m}
            recipes[", ".join(words) or "plain"] = replace(
                plain,
                p=min(plain.p, MOST_P) if moving or colour else plain.p,  # long rows
                features=kind,
                feature_options=options if kind != "raw" else {},
                center=level == "centred",
                standardised=level == "standardised",
                **stacking,
            )
    return recipes


def _forms(moving, images, shape):
    """The stacks, and what is done to columns, that are tried of a descriptor."""
    if moving:
        return [LONGER[0], *SHARES], ["centred", "standardised"]
    if images:
        return [1], ["", "centred"]
    longer = [m for m in LONGER if len(shape) == 1 and m * shape[0] <= MOST_STACKED]
    narrow = ["standardised"] * bool(longer)  # as of sensors
    return [1, STACK, *longer, *SHARES], ["", "centred", *narrow]


def in_colour(recipe):
    """Does a Recipe take frames in colour?"""
    kind = frames.DESCRIPTORS.get(recipe.features)
    return kind is not None and kind.colour


def coloured(rows, shape, colours):
    """The colours (n, 3 d) of a set's frames in small; None: of its grey rows."""
    if colours is not None:
        return colours
    grey = rows.reshape(-1, *shape)
    return frames.colour(
        np.stack([frames.prepared(frame, None, SMALL) for frame in grey])
    )


def are_coloured(colours):
    """Does one of the sets (n_i, 3 d) of frames.colour tell more than grey?"""
    pixels = (rows.reshape(-1, 3) for rows in colours if rows is not None)
    return any(
        (some.max(axis=1) - some.min(axis=1)).max() > GREY * np.abs(some).max()
        for some in pixels
    )


def base_of(recipe):
    """The Recipe of raw rows, from which those of all its variants can be made."""
    return replace(
        recipe,
        features="raw",
        feature_options={},
        center=False,
        standardised=False,
        steps=None,
        stack=1,
    )


# clips are read by threads, of which a user's function knows nothing
ONE_AT_A_TIME = threading.RLock()


def describe(clip, recipe):
    """The descriptors (n, d) of a clip's frames by a Recipe.

    ValueError if the user's own function does not return finite numbers.
    """
    if recipe.describe is None:
        return frames.describe(clip, recipe.features, **recipe.feature_options)
    with ONE_AT_A_TIME:
        try:
            rows = frames.describe(clip, recipe.describe)
        except Exception as error:
            what = " ".join(f"{type(error).__name__}: {error}".split())
            raise ValueError(f"describe raised {what}") from error
    if not np.isfinite(rows).all():
        raise ValueError("describe must return finite numbers, got NaN or inf")
    return rows


def described_set(rows, shape, recipe, colours=None):
    """A set's raw rows of frames of this shape, described or standardised by a Recipe.

    colours: as coloured has them.
    """
    if in_colour(recipe):
        rows = describe(coloured(rows, shape, colours).reshape(-1, *SMALL, 3), recipe)
    elif recipe.features != "raw":
        rows = describe(rows.reshape(-1, *shape), recipe)
    if recipe.single and rows.dtype != np.uint8:  # which take less
        rows = rows.astype(np.float32, copy=False)
    return standardised(rows) if recipe.standardised else rows


def standardised(rows):
    """Each column of rows (n, d) less its mean, over its standard deviation.

    A constant column becomes 0.
    """
    # of largest value 1, so that what is constant leaves no rounding of its mean
    return StandardScaler().fit_transform(maxabs_scale(rows))


def shortened(sets):
    """Sets of rows (n_i, n) of the inner products of sets (n_i, d), n rows in all.

    They are the factor L of R = L Q, R being all rows and Q orthogonal, as exact as
    the rows themselves. The sets as they are where that would win little.
    """
    lengths = [*map(len, sets)]
    n = sum(lengths)
    if n > MOST_SHORTENED or SHORTER * n > sets[0].shape[1]:
        return sets
    rows = np.concatenate(sets, dtype=np.float64)
    (upper,) = scipy.linalg.qr(rows.T, overwrite_a=True, mode="r", check_finite=False)
    turned = upper[:n].T.astype(shared.float_type(*sets), order="C")
    return np.split(turned, np.cumsum(lengths[:-1]))


def resampled(rows, n):
    """The rows at n even steps in time, interpolated linearly; None: as they are."""
    if n is None:
        return rows
    whole, share = np.divmod(np.linspace(0, len(rows) - 1, n), 1)
    before = whole.astype(int)
    after = np.minimum(before + 1, len(rows) - 1)
    share = share[:, None].astype(shared.float_type(rows))
    return (1 - share) * rows[before] + share * rows[after]


def kept_rows(rows, recipe):
    """The rows of a window, a row a frame, that a kernel takes: stacked and centred.

    With an ARMA model they are centred before they are stacked, as from_video does.
    """
    if not recipe.arma:
        rows = subspaces.block_hankel(rows, recipe.stack)
    kind = np.float32 if recipe.single else shared.float_type(rows)
    rows = rows.astype(kind, order="C")
    if not recipe.keeps_mean and (rows == rows[:1]).all():
        raise ValueError("less their mean no frame is left: all frames are the same")
    subspaces.normalise(rows, recipe.center, False)
    return subspaces.block_hankel(rows, recipe.arma) if recipe.arma else rows


def padded(spectra):
    """U (n, d, r) and s (n, r) of [(U (d, r_i), s (r_i,)), ...], filled up by zeros."""
    U, s = zip(*spectra)
    s = shared.joined([values[None, None] for values in s])[:, 0]
    return shared.joined([directions[None] for directions in U]), s


def rank_of(s):
    """The least rank of sets with singular values s (n, r)."""
    return np.count_nonzero(s, axis=1).min()
