"""Estimators of subspaces on the 2-D data of scikit-learn's own checks."""

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data


class OnRows:
    """Lets scikit-learn's checks, whose data are 2-D, run: a row x stands for the line spanned by
    (x, 1), or for a set of that one frame."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = True
        tags.input_tags.three_d_array = False
        return tags

    def check_subspaces(self, X, fit=False):
        if not fit:
            check_is_fitted(self)
        X = validate_data(self, X, reset=fit, dtype=[np.float64, np.float32])
        lines = np.hstack([X, np.ones((len(X), 1), X.dtype)])
        return (lines / np.linalg.norm(lines, axis=1, keepdims=True))[:, :, None]

    def check_sets(self, X, fit=False):
        return [line.T for line in self.check_subspaces(X, fit)]
