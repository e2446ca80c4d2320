"""Laws of all estimators: scikit-learn's own checks, for estimators of subspaces on its
2-D data, and that what is learned belongs to the estimator.
"""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils import estimator_checks
from sklearn.utils.validation import check_is_fitted, validate_data

SKIPPED = {
    "check_array_api_input",
    "check_classifier_data_not_an_array",
    "check_sample_weights_pandas_series",
}


def check_as_scikit_learn_does(estimator, expected=None):
    """All of its checks, but for the failures expected, {name: why}."""
    expected = {} if expected is None else expected
    results = estimator_checks.check_estimator(
        estimator, expected_failed_checks=expected, on_fail=None, on_skip=None
    )
    by_status = {"passed": set(), "failed": set(), "skipped": set(), "xfail": set()}
    for result in results:
        by_status[result["status"]].add(result["check_name"])
    assert not by_status["failed"], [r for r in results if r["status"] == "failed"]
    assert by_status["xfail"] == set(expected)
    assert by_status["skipped"] <= SKIPPED
    assert len(by_status["passed"]) >= 38


def answers_before_and_after_reuse(estimator, Z, y, answers):
    """answers(fitted), before and after the memory of the training set was used for
    other numbers: of an array or a list of arrays Z, and of an array of labels y.
    """
    y = y.copy()
    Z = [part.copy() for part in Z] if isinstance(Z, list) else Z.copy()
    fitted = clone(estimator).fit(Z, y)
    before = answers(fitted)
    for part in Z:
        part[...] = 7
    if isinstance(Z, list):
        Z[:] = Z[:1] * len(Z)
    y[:] = y[0]
    return before, answers(fitted)


class OnRows:
    """Lets scikit-learn's checks, whose data are 2-D, run: a row x stands for the line
    spanned by (x, 1).
    """

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = True
        tags.input_tags.three_d_array = False
        return tags

    def check_input(self, X, fit=False):
        if not fit:
            check_is_fitted(self)
        X = validate_data(self, X, reset=fit, dtype=[np.float64, np.float32])
        lines = np.hstack([X, np.ones((len(X), 1), X.dtype)])
        return (lines / np.linalg.norm(lines, axis=1, keepdims=True))[:, :, None]


class OnSetsOfRows(OnRows):
    """The same for estimators on sets of frames: a row is a set of one frame."""

    def check_input(self, X, fit=False):
        return [line.T for line in super().check_input(X, fit)]


def refuses_changes(model, changes, X):
    """A fitted model refuses X while one of these parameters is another than in fit."""
    answer = model.predict if hasattr(model, "predict") else model.transform
    answers = answer(X)
    for name, value in changes.items():
        before = getattr(model, name)
        model.set_params(**{name: value})
        with pytest.raises(ValueError, match=f"^{name} must be as in fit, or fit be"):
            answer(X)
        model.set_params(**{name: before})
    assert np.array_equal(answer(X), answers)
