"""The equations of each module, typeset at the top of its page of the reference.

Docstrings have them as plain text, for help(). Sphinx aligns rows at &, and MathJax takes
underscores in text as they are.
"""

OF = {
    "grassmann_sc": r"""
\hat X = X X^T, \qquad \langle \hat X, \hat D \rangle = \|X^T D\|_F^2
&\qquad\text{projection_kernel} \\
\|\hat X - \hat Y\|_F = \sqrt 2\, \|\sin\theta\|_2
&\qquad\text{chordal_distance} \\
\min_y \Big\|\hat X - \sum_j y_j \hat D_j\Big\|_F^2 + \lambda \|y\|_1
&\qquad\text{gSC: gsc, sparse_codes} \\
\min_y \Big\|\hat X - \sum_j y_j \hat D_j\Big\|_F^2 \ \text{ with } \sum_j y_j = 1
&\qquad\text{gLC: glc, locality_codes} \\
\operatorname{Proj}\Big(\sum_j y_j \hat D_j\Big)
&\qquad\text{reconstruct} \\
e_c = \Big\|\hat X - \sum_{j \in c} y_j \hat D_j\Big\|_F^2
&\qquad\text{class_residuals}
""",
    "kernels": r"""
k(a, b) = \langle \phi(a), \phi(b) \rangle, \qquad \Psi = \Phi(X) A
&\qquad\text{kernel_bases} \\
\langle \hat\Psi_i, \hat\Psi_j \rangle = \|A_i^T K(X_i, X_j) A_j\|_F^2
&\qquad\text{kernel_gram} \\
k(a, b) = \exp(-\gamma \|a - b\|^2)
&\qquad\text{rbf}
""",
    "learn": r"""
\min_{D, Y} \sum_i w_i \Big(\Big\|\hat X_i - \sum_j y_{ij} \hat D_j\Big\|_F^2
+ \lambda \|y_i\|_1\Big)
&\qquad\text{gdl} \\
\hat D_r = \operatorname{Proj}\Big(\sum_i w_i y_{ir} \Big(\hat X_i
- \sum_{j \neq r} y_{ij} \hat D_j\Big)\Big)
&\qquad\text{update_atoms}
""",
    "large.streams": r"""
A_r = \sum_i w_i y_{ir} \hat X_i, \qquad B = \sum_i w_i y_i y_i^T, \qquad
\hat D_r = \operatorname{Proj}\Big(A_r - \sum_{j \neq r} B_{rj} \hat D_j\Big)
""",
    "intrinsic": r"""
X^T Y = U \cos(\Theta) V^T, \qquad
\log_X(Y) = (Y V - X U \cos\Theta) \frac{\Theta}{\sin\Theta} U^T
&\qquad\text{log_map}
""",
    "projected": r"""
\min_y \Big\|\hat X - \operatorname{Proj}\Big(\sum_j y_j \hat D_j\Big)\Big\|_F^2
+ \lambda \|y\|_1 \ \text{ with } \sum_j y_j = 1
&\qquad\text{projected_codes}
""",
    "variants": r"""
\min_y \Big\|\hat X - \sum_j y_j \hat D_j\Big\|_F^2 + \lambda \|y\|_1
\ \text{ with } \sum_j y_j = 1
&\qquad\text{affine_sparse_codes} \\
\min_y \Big\|\hat X - \sum_j y_j \hat D_j\Big\|_F^2
+ \rho \sum_j \Big(y_j \exp\frac{\|\hat X - \hat D_j\|_F}{\sigma}\Big)^2
\ \text{ with } \sum_j y_j = 1
&\qquad\text{penalised_locality_codes} \\
A = \Sigma^{1/2} U^T, \qquad x = \Sigma^{-1/2} U^T k, \qquad K = U \Sigma U^T
&\qquad\text{whitened}
""",
    "discriminative": r"""
K'(x, y) = \langle x, (I + S / \rho)^{-1} y \rangle
= K(x, y) - k_x^T H (\rho I + H K H)^{-1} H k_y
&\qquad\text{Whitening} \\
e_c(X) = \min_y \Big\|\hat X - \sum_{j \in c} y_j \hat D_j\Big\|_F^2 + \rho \|y\|_2^2
&\qquad\text{ridge_residuals} \\
\min_D \sum_i w_i \Big(\beta e_{c_i}(X_i) + \log \sum_c \exp(-\beta e_c(X_i))\Big)
&\qquad\text{discriminative_atoms}
""",
    "subspaces": r"""
F^T = U S V^T, \qquad X = (u_1, \dots, u_p)
&\qquad\text{from_image_set} \\
f(t) = C z(t) + w(t), \qquad z(t + 1) = A z(t) + v(t)
&\qquad\text{arma} \\
O = [C;\ C A;\ \dots;\ C A^{m-1}]
&\qquad\text{observability}
""",
    "baselines.tangent": r"""
\min_y \Big\|\log_P(X) - \sum_j y_j \log_P(D_j)\Big\|_F^2 + \lambda \|y\|_1
&\qquad\text{log_euclidean_codes} \\
\min_y \Big\|\sum_j y_j \log_X(D_j)\Big\|_F^2 + \lambda \|y\|_1
\ \text{ with } \sum_j y_j = 1
&\qquad\text{intrinsic_codes}
""",
}


def of(module):
    """The block of a module's equations as reStructuredText, empty if it has none."""
    if module not in OF:
        return ""
    rows = OF[module].strip().split("\n")
    return ".. math::\n\n" + "".join(f"   {row}\n" for row in rows) + "\n"
