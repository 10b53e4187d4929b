"""The error function of arrays in float64, which neither Python nor NumPy has.

    |x| <= 0.46875   erf(x) = x p(x^2) / q(x^2)
    beyond           erf(x) = sign(x) (1 - exp(-x^2) p(|x|) / q(|x|))

Rational approximations of W. J. Cody, "Rational Chebyshev approximations for the error function",
Mathematics of Computation 23 (1969). The second is good to 4; from there to 6 its error is that of a
complement below 2e-8, and beyond 6 a float64 does not tell erf from 1.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from wpk.blocks import BLOCK

Floats = NDArray[np.float64]

_NEAR = 0.46875
_ONE_FROM = 6.0
_NEAR_P = (
    *(1.85777706184603153e-1, 3.16112374387056560e0, 1.13864154151050156e2),
    *(3.77485237685302021e2, 3.20937758913846947e3),
)
_NEAR_Q = (
    *(1.0, 2.36012909523441209e1, 2.44024637934444173e2, 1.28261652607737228e3),
    2.84423683343917062e3,
)
_FAR_P = (
    *(2.15311535474403846e-8, 5.64188496988670089e-1, 8.88314979438837594e0),
    *(6.61191906371416295e1, 2.98635138197400131e2, 8.81952221241769090e2),
    *(1.71204761263407058e3, 2.05107837782607147e3, 1.23033935479799725e3),
)
_FAR_Q = (
    *(1.0, 1.57449261107098347e1, 1.17693950891312499e2, 5.37181101862009858e2),
    *(1.62138957456669019e3, 3.29079923573345963e3, 4.36261909014324716e3),
    *(3.43936767414372164e3, 1.23033935480374942e3),
)


def erf(x: NDArray[np.floating]) -> Floats:
    """Return the error function of every element, to a few units of float64's last place."""
    given, y = np.asarray(x, np.float64).ravel(), np.empty(x.size)
    for at in range(0, given.size, BLOCK):
        y[at : at + BLOCK] = _erf(given[at : at + BLOCK])
    return y.reshape(x.shape)


def _erf(x: Floats) -> Floats:
    size = np.minimum(np.abs(x), _ONE_FROM)  # of NaN it is NaN
    far = _polynomial(_FAR_P, size)
    far /= _polynomial(_FAR_Q, size)
    square = size * size
    far *= np.exp(-square)
    np.subtract(1.0, far, out=far)
    np.copysign(far, x, out=far)
    near = np.flatnonzero(size <= _NEAR)
    few = square[near]
    far[near] = x[near] * (_polynomial(_NEAR_P, few) / _polynomial(_NEAR_Q, few))
    return far


def _polynomial(coefficients: Sequence[float], x: Floats) -> Floats:
    """Highest power first, after Horner."""
    y = np.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        y *= x
        y += coefficient
    return y
