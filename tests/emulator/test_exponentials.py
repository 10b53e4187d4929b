"""The exponential that attention weighs by: how far it is off, and where it is 0 or no number."""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]

TINIEST = 2.0**-126


def _exponentials(emulate, x: Floats) -> Floats:
    y = np.zeros_like(x)
    emulate("exponentials", "near_exponentials", [x, y, x.size], threads=64)
    return y


def test_is_as_near_as_its_header_says(emulate):
    random = np.random.default_rng(3)
    x = -np.concatenate(
        [random.uniform(0, 87, 20_000), random.exponential(1, 20_000), 2.0 ** -np.arange(30)]
    ).astype(np.float32)
    true = np.exp(x.astype(np.float64))
    x, true = x[true >= 1.01 * TINIEST], true[true >= 1.01 * TINIEST]
    found = _exponentials(emulate, x).astype(np.float64)
    assert (np.abs(found / true - 1) <= 2.0**-22 * (1 + np.abs(x))).all()
    # A factor of one unit in the last place more would be seen.
    further = np.exp(x.astype(np.float64) * (1 + 2.0**-20))
    assert not (np.abs(further / true - 1) <= 2.0**-22 * (1 + np.abs(x))).all()


def test_what_is_too_small_is_0_and_no_number_stays_one(emulate):
    x = np.array([0, -0.0, -88, -1000, np.finfo(np.float32).min, -np.inf, np.nan], np.float32)
    np.testing.assert_array_equal(_exponentials(emulate, x), [1, 1, 0, 0, 0, 0, np.nan])
