"""Windows of recordings become stretches of one answer: how they join, how right they are.

The starts and ends of all windows of a recording cut it into segments. In each segment
the windows that cover it vote by their probabilities. It is unlike all classes if more
than half of these windows are. Segments of one answer that touch are a stretch.
"""

from bisect import bisect
from collections import namedtuple
from itertools import pairwise

import numpy as np
from scipy.sparse import csr_array

from grassmann_classify.words import UNLIKE, as_number, is_unnamed, printable

# answer: a class, or UNLIKE, as text; probability: the mean of what the windows voted
# for it, over the time in which any voted, NaN without any and where it is UNLIKE; agree:
# the share of windows with this answer, each for the time that it lies in the stretch
Stretch = namedtuple("Stretch", "recording start end answer probability agree")
# n_windows: that have a truth; windows, time: the shares that are right; border: the
# median_border, None without any; n_borders: of the truth
Score = namedtuple("Score", "n_windows windows time border n_borders")
ROUNDING = 1e-9


def timeline(recordings, spans, votes, unlike, classes, smooth=0):
    """[Stretch, ...] of the answers to windows, by recording and time.

    recordings (n,): of which each is a window; spans (n, 2): when they begin and end;
    votes (n, n_classes): probabilities; unlike (n,): which are unlike all classes, and
    vote for none; smooth: over so long the medians of probabilities decide.
    """
    names = np.array(recordings)
    answers = [*map(str, classes), UNLIKE]
    stretches = []
    for recording in dict.fromkeys(recordings):
        mine = names == recording
        columns = _joined(spans[mine], votes[mine], unlike[mine], smooth)
        stretches += [
            Stretch(recording, start, end, answers[place], *shares)
            for start, end, place, *shares in zip(*columns)
        ]
    return stretches


def _joined(spans, votes, unlike, smooth):
    """Start, end, place of the answer, probability and agree of a recording's stretches."""
    n_classes = votes.shape[1]
    begin, end, covers = _segments(spans)
    n_windows = covers.sum(axis=1)
    n_unlike = covers @ unlike.astype(float)
    # of the last column, unlike all classes, no probability is known
    votes = np.column_stack([np.where(unlike[:, None], 0, votes), 0 * unlike])
    voted = covers @ votes / np.maximum(n_windows - n_unlike, 1)[:, None]
    own = np.where(unlike, n_classes, votes.argmax(axis=1))
    agree = covers @ np.eye(n_classes + 1)[own]
    decides = np.column_stack([voted[:, :-1], n_unlike / n_windows])
    if smooth:
        decides[n_unlike == n_windows, :-1] = np.nan  # nobody votes
        decides = _medians(begin, end, decides, smooth)
    first = decides[:, :-1].max(axis=1, keepdims=True) - ROUNDING
    # where medians are equal, the segment's own votes decide
    place = np.where(decides[:, :-1] >= first, voted[:, :-1], -1).argmax(axis=1)
    place[decides[:, -1] > 0.5] = n_classes
    changes = (place[1:] != place[:-1]) | (begin[1:] > end[:-1])
    starts = np.flatnonzero(np.append(True, changes))
    each = np.arange(len(place))
    voting = n_unlike < n_windows  # of the others no probability is known
    votes_for, probability, windows, alike = (
        np.add.reduceat(values * (end - begin), starts)
        for values in (voting, voted[each, place], n_windows, agree[each, place])
    )
    ends = end[np.append(starts[1:], len(end)) - 1]
    known = (votes_for > 0) & (place[starts] != n_classes)
    probability[~known] = np.nan
    probability[known] /= votes_for[known]
    return begin[starts], ends, place[starts], probability, alike / windows


def _segments(spans):
    """(When segments begin (m,), end, which windows cover each (m, n)) where any does."""
    edges = np.unique(spans)
    first, last = np.searchsorted(edges, spans).T
    segments = np.concatenate([np.arange(*pair) for pair in zip(first, last)])
    rows = np.cumsum([0, *last - first])
    covers = csr_array(
        (np.ones(len(segments)), segments, rows), shape=(len(spans), len(edges) - 1)
    ).T.tocsr()
    some = covers.sum(axis=1) > 0
    return edges[:-1][some], edges[1:][some], covers[some]


def _medians(begin, end, values, width):
    """Medians over time of the columns of values (m, k), so long around each segment.

    NaN has no weight.
    """
    medians = np.empty_like(values)
    columns = np.arange(values.shape[1])
    for i, middle in enumerate((begin + end) / 2):
        low = middle - width / 2
        high = middle + width / 2
        near = slice(np.searchsorted(end, low, "right"), np.searchsorted(begin, high))
        inside = np.minimum(end[near], high) - np.maximum(begin[near], low)
        order = values[near].argsort(axis=0)
        weights = inside[:, None] * ~np.isnan(values[near])
        so_far = np.take_along_axis(weights, order, axis=0).cumsum(axis=0)
        half = (so_far < so_far[-1] * (0.5 - ROUNDING)).sum(axis=0)
        medians[i] = values[near][order[half, columns], columns]
    return medians


# --------------------------------------------------------------------------------- truth


def stretches_of(recordings, spans, labels):
    """[Stretch, ...] of windows or rows that have labels (n,)."""
    classes, index = np.unique(labels, return_inverse=True)
    return timeline(
        recordings,
        spans,
        votes=np.eye(len(classes))[index],
        unlike=np.zeros(len(index), bool),
        classes=classes,
    )


def labelled_rows(clips, classes, recordings):
    """(Recordings, spans, labels) of rows of these recordings that have a label, or ().

    A label that is none of the classes, as labelled_stretches names them, is UNLIKE all;
    one that is the same number is that class.
    """
    names = [*map(str, classes)]
    named = {as_number(name): name for name in names} | dict(zip(names, names))

    def class_of(label):
        return named.get(label, named.get(as_number(label), UNLIKE))

    rows = [
        (clip.recording, span, class_of(printable(label, but="")))
        for clip in clips
        if clip.truth is not None and clip.recording in recordings
        for span, label in zip(pairwise(clip.edges), clip.truth)
        if not is_unnamed(label)
    ]
    return [*map(np.array, zip(*rows))]


def answers_at(stretches, recordings, times):
    """The answer to each recording at each time (n,), "" where it has none."""
    order = {name: k for k, name in enumerate(dict.fromkeys(s[0] for s in stretches))}
    starts = [(order[name], start) for name, start, *_ in stretches]
    answers = []
    for name, time in zip(recordings, times):
        k = bisect(starts, (order.get(name, -1), time)) - 1
        own = k >= 0 and stretches[k].recording == name and time < stretches[k].end
        answers.append(stretches[k].answer if own else "")
    return np.array(answers)


def score_of(rows, stretches, recordings, spans, answers):
    """The Score of stretches, and of answers (n,) to windows, by rows of labelled_rows.

    The truth of a window is the label at its middle; only time counts that has a label
    and an answer. None where no window, or no time, counts.
    """
    truth = stretches_of(*rows)
    labels = answers_at(truth, recordings, spans.mean(axis=1))
    right = (labels == answers)[labels != ""]
    names, times, labels = rows
    own = answers_at(stretches, names, times.mean(axis=1))
    weights = np.diff(times)[:, 0] * (own != "")
    if not len(right) or not weights.sum():
        return None
    time = np.average(own == labels, weights=weights)
    return Score(
        len(right), right.mean(), time, *median_border(truth, stretches, spans)
    )


def median_border(truth, stretches, spans):
    """(The median distance of true borders, or None; their number).

    That of a border is how far it is from the nearest between the same two answers; from
    the nearest of any answers if there is none of these; the whole length of the
    recording's answers if it has no border. Stretches that follow each other have a
    border where the second begins, if at most the longest of the spans lies between, or
    what lies between the starts of most.
    """
    steps = np.diff(spans[:, 0])
    gap = np.ptp(spans, axis=1).max()
    if (steps > 0).any():
        gap = max(gap, np.median(steps[steps > 0]))
    true, answered = (
        [
            (behind.recording, behind.start, (before.answer, behind.answer))
            for before, behind in pairwise(some)
            if before.recording == behind.recording
            and before.answer != behind.answer
            and behind.start - before.end <= gap
        ]
        for some in (truth, stretches)
    )
    errors = []
    for name, time, pair in true:
        mine = [(p != pair, abs(t - time)) for other, t, p in answered if other == name]
        times = [t for stretch in stretches if stretch[0] == name for t in stretch[1:3]]
        errors.append(min([*mine, (True, np.ptp(times))])[1])
    return (float(np.median(errors)) if errors else None), len(errors)


def border_error(collection, test, predicted):
    """The median_border of the answers (n,) to the test sets (n,) of a Collection.

    None without a border. In the unit of collection.spans; each window votes for its
    answer. Labelled windows never cross a border: they are cut there.
    """
    if collection.spans is None:
        return None
    recordings = [collection.recordings[i] for i in test]
    spans = collection.spans[test]
    truth, answered = (
        stretches_of(recordings, spans, labels)
        for labels in (collection.label[test], predicted)
    )
    return median_border(truth, answered, spans)[0]
