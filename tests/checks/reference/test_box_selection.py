"""Our NonMaxSuppression selects what onnx's does, which goes box by box."""

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from wpk.checks.reference.operators import REFERENCE_OPS


@pytest.mark.parametrize("centred", [0, 1])
@pytest.mark.parametrize("threshold", [None, 0.4])
def test_selects_what_onnx_does(centred: int, threshold: float | None) -> None:
    rng = np.random.default_rng(7)
    names = ["b", "s", "m", "o", "t"][: 4 if threshold is None else 5]
    node = onnx.helper.make_node("NonMaxSuppression", names, ["y"], center_point_box=centred)
    for overlap in (0.0, 0.3, 1.0):
        feeds = {
            "b": rng.uniform(0, 5, (2, 40, 4)),
            "s": rng.integers(0, 8, (2, 3, 40)) / 8,
            "m": np.array([6]),
            "o": np.array([overlap]),
            "t": np.array([threshold or 0.0]),
        }
        feeds = {name: feeds[name] for name in names}
        (own,) = ReferenceEvaluator(node, new_ops=[*REFERENCE_OPS]).run(None, feeds)
        (right,) = ReferenceEvaluator(node).run(None, feeds)
        np.testing.assert_array_equal(own, right)
        assert own.dtype == np.int64


def test_without_a_number_of_boxes_none_is_selected() -> None:
    node = onnx.helper.make_node("NonMaxSuppression", ["b", "s"], ["y"])
    feeds = {"b": np.ones((1, 2, 4)), "s": np.ones((1, 1, 2))}
    (own,) = ReferenceEvaluator(node, new_ops=[*REFERENCE_OPS]).run(None, feeds)
    assert own.shape == (0, 3)
