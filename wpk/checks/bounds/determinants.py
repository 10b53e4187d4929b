"""Error bounds of Det, by elimination with row pivots.

Computed pivots are exactly those of a matrix that is off by 4 u sqrt(n) |L||U| at most (Higham, theorem 9.3, with
sqrt(n) in place of n, as everywhere here), and by the errors of the elements. A matrix that is off by e in norm has
a determinant that is off by prod(s + e) - prod(s) at most, s being its singular values (Ipsen and Rehman,
"Perturbation bounds for determinants and characteristic polynomials", 2008). The product rounds n times.
"""

from math import sqrt

import numpy as np

from wpk.checks.bounded import Call, Floats
from wpk.checks.bounds.sums import SAFETY


def determinant(call: Call) -> Floats:
    """Return the error bound; 0 where a matrix is not finite, of which there is no number."""
    x = np.asarray(call.x, np.float64)
    size = x.shape[-1]
    own = SAFETY * call.roundoff * sqrt(max(size, 1))
    finite = np.asarray(np.isfinite(x).all(axis=(-2, -1)))
    usable = np.where(finite[..., None, None], x, 0.0)
    error = np.broadcast_to(call.error(0), x.shape)
    off = own * _norm(_lower_by_upper(usable)) + _norm(error)
    singular = np.linalg.svd(usable, compute_uv=False)
    with np.errstate(over="ignore"):
        moved = np.prod(singular + off[..., None], axis=-1) - np.prod(singular, axis=-1)
    found: Floats = np.where(finite, moved + own * np.abs(np.asarray(call.y, np.float64)), 0.0)
    return found


def _norm(matrices: Floats) -> Floats:
    norm: Floats = np.sqrt((matrices * matrices).sum(axis=(-2, -1)))
    return norm


def _lower_by_upper(matrices: Floats) -> Floats:
    """``|L||U|`` of each matrix, its rows in the order in which they became pivots."""
    upper = matrices.reshape(-1, *matrices.shape[-2:]).copy()
    size, all_of_them = upper.shape[-1], np.arange(len(upper))
    lower = np.zeros_like(upper)
    for step in range(size):
        pivot = step + np.abs(upper[:, step:, step]).argmax(axis=1)
        for each in (lower, upper):
            rows = each[all_of_them, pivot].copy()
            each[all_of_them, pivot], each[:, step] = each[:, step].copy(), rows
        divisor = upper[:, step, step, None]
        below = np.where(
            divisor != 0, upper[:, step + 1 :, step] / np.where(divisor, divisor, 1), 0.0
        )
        lower[:, step, step], lower[:, step + 1 :, step] = 1.0, below
        upper[:, step + 1 :] -= below[..., None] * upper[:, step, None]
    product: Floats = np.abs(lower) @ np.abs(upper)
    return product.reshape(matrices.shape)
