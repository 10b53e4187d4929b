"""Constants that are known exactly, in another type."""

import numpy as np

from wpk.graph_passes.core.exact import rounded_constant, unrounded


def test_a_constant_is_rounded_once() -> None:
    exact = np.array([1.0 + 2.0**-11 + 2.0**-30])
    constant = rounded_constant("c", exact, np.float32)
    assert unrounded(constant) == exact
    assert unrounded(constant).astype(np.float16) == 1.0 + 2.0**-10
    assert constant.values.astype(np.float16) == 1.0  # twice: to a tie, then to even


def test_a_number_that_was_chosen_is_kept() -> None:
    chosen, exact = np.array([0.25, 0.1]), np.array([0.2, 0.1])
    constant = rounded_constant("c", chosen, np.float32, exact)
    assert unrounded(constant).tolist() == [0.25, 0.1]
