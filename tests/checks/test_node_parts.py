"""Which nodes are cut, and that parts give what the whole gives."""

from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from onnx.helper import make_node

from wpk import blocks
from wpk.checks import node_parts
from wpk.checks.float64_nodes import Array, NodeEvaluator
from wpk.checks.node_parts import Cut, cut_of, filters_of
from wpk.checks.second_opinion import SecondOpinion, Verdict

RNG = np.random.default_rng(0)
CORES = 3


def _array(*shape: int) -> Array:
    return RNG.standard_normal(shape)


Case = tuple[onnx.NodeProto, list[Array | None]]

CUT: dict[str, tuple[Case, Cut]] = {
    "element by element, some of them broadcast": (
        (make_node("Add", ["x", "z"], ["y"]), [_array(4, 1, 7), _array(5, 7)]),
        Cut(7, (2, 1), 2),
    ),
    "one image": (
        (make_node("Relu", ["x"], ["y"]), [_array(1, 9, 2)]),
        Cut(9, (1,), 1),
    ),
    "limits that are left out": (
        (make_node("Clip", ["x", "", "m"], ["y"]), [_array(8, 3), None, np.array(0.5)]),
        Cut(8, (0, None, None), 0),
    ),
    "a convolution": (
        (make_node("Conv", "xwb", ["y"]), [_array(6, 4, 5, 5), _array(3, 4, 3, 3), _array(3)]),
        Cut(6, (0, None, None), 0),
    ),
    "windows of channels": (
        (make_node("MaxPool", ["x"], ["y"], kernel_shape=[2, 2]), [_array(1, 8, 5, 5)]),
        Cut(8, (1,), 1),
    ),
    "a layer norm": (
        (make_node("LayerNormalization", "xs", ["y"], axis=2), [_array(1, 7, 4, 5), _array(4, 5)]),
        Cut(7, (1, None), 1),
    ),
    "a softmax over channels": (
        (make_node("Softmax", ["x"], ["y"], axis=1), [_array(6, 7, 9)]),
        Cut(6, (0,), 0),
    ),
    "matrices of heads": (
        (make_node("MatMul", "ab", ["y"]), [_array(1, 6, 4, 5), _array(6, 5, 3)]),
        Cut(6, (1, 0), 1),
    ),
    "matrices times one": (
        (make_node("MatMul", "ab", ["y"]), [_array(6, 4, 5), _array(5, 3)]),
        Cut(6, (0, None), 0),
    ),
    "rows of one matrix": (
        (make_node("MatMul", "ab", ["y"]), [_array(1, 1, 9, 5), _array(1, 5, 3)]),
        Cut(9, (2, None), 2),
    ),
    "channels one behind the other": (
        (make_node("Concat", "ab", ["y"], axis=-2), [_array(1, 8, 5), _array(1, 2, 5)]),
        Cut(5, (2, 2), 2),
    ),
    "axes that change places": (
        (make_node("Transpose", ["x"], ["y"], perm=[2, 0, 1]), [_array(2, 8, 3)]),
        Cut(8, (1,), 2),
    ),
}

WHOLE: dict[str, Case] = {
    "one row": (make_node("Softmax", ["x"], ["y"], axis=0), [_array(8, 8)]),
    "a softmax that does not say its axis": (make_node("Softmax", ["x"], ["y"]), [_array(1, 8, 8)]),
    "one product": (make_node("MatMul", "ab", ["y"]), [_array(8, 8), _array(8, 8)]),
    "a vector times a matrix": (make_node("MatMul", "ab", ["y"]), [_array(8), _array(4, 8, 8)]),
    "places of the largest": (
        make_node("MaxPool", ["x"], ["y", "i"], kernel_shape=[2, 2]),
        [_array(8, 8, 4, 4)],
    ),
    "shapes that do not fit": (make_node("Add", "xz", ["y"]), [_array(8, 3), _array(8, 2)]),
    "one number": (make_node("Relu", ["x"], ["y"]), [_array(1, 1)]),
    "an operator that is not known": (make_node("CumSum", "xa", ["y"]), [_array(8), _array()]),
}


@pytest.fixture(autouse=True)
def several_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: range(CORES))
    monkeypatch.setattr(node_parts, "_LEAST", 1)
    monkeypatch.setattr(node_parts, "PART", 4)


def _run(node: onnx.NodeProto, arrays: Sequence[Array | None]) -> Array:
    (found,) = NodeEvaluator(node, {"": 21})(arrays)
    return found


@pytest.mark.parametrize("name", CUT)
def test_parts_give_what_the_whole_gives(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case, cut = CUT[name]
    assert cut_of(*case) == cut
    parts = _run(*case)
    monkeypatch.setattr(node_parts, "cut_of", lambda *_: None)
    np.testing.assert_allclose(parts, _run(*case), rtol=1e-13, atol=1e-14)


def test_parts_that_are_exchanged_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison above can fail."""
    (node, arrays), cut = CUT["a convolution"]
    right, part = _run(node, arrays), Cut.part
    monkeypatch.setattr(
        Cut, "part", lambda self, x, at: part(self, x, slice(0, at.stop - at.start))
    )
    assert not np.allclose(_run(node, arrays), right)
    assert cut.extent == 6


@pytest.mark.parametrize("name", WHOLE)
def test_stays_whole(name: str) -> None:
    assert cut_of(*WHOLE[name]) is None


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize("opset", [11, 13])
def test_rows_of_every_opset_stay_together(op: str, opset: int) -> None:
    """Before opset 13 all axes from the first one of the row on belong to it."""
    x = _array(7, 3, 2)
    (found,) = NodeEvaluator(make_node(op, ["x"], ["y"]), {"": opset})([x])
    rows = (np.exp(found) if op == "LogSoftmax" else found).sum(axis=(1, 2) if opset < 13 else 2)
    np.testing.assert_allclose(rows, 1.0, rtol=1e-12)


def test_convolutions_of_one_group_are_cut_by_filters() -> None:
    x, weight = _array(1, 4, 5, 5), _array(6, 4, 3, 3)
    found = filters_of(make_node("Conv", "xw", ["y"]), [x, weight])
    assert found is not None
    assert (found.extent, found.written, found.products) == (6, 1, 25 * 6 * 36)
    few = _run(make_node("Conv", "xw", ["y"]), found.part([x, weight], slice(None, None, 2)))
    np.testing.assert_allclose(few, _run(make_node("Conv", "xw", ["y"]), [x, weight])[:, ::2])
    grouped = make_node("Conv", "xw", ["y"], group=2)
    assert filters_of(grouped, [x, _array(6, 2, 3, 3)]) is None


@pytest.mark.parametrize("wrong", [False, True])
def test_a_part_is_enough_for_a_second_opinion(
    wrong: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Filters in another order are seen in the few of which ONNX Runtime is asked."""
    monkeypatch.setattr("wpk.checks.second_opinion._MOST_ELEMENTS", 64)
    monkeypatch.setattr("wpk.checks.second_opinion._MOST_PRODUCTS", 512)
    node = make_node("Conv", "xwb", ["y"])
    seen: list[tuple[int, ...]] = []

    class Evaluator(NodeEvaluator):
        def __call__(self, arrays: Sequence[Array | None]) -> list[Array]:
            (found,) = super().__call__(arrays)
            seen.append(found.shape)
            return [found[:, ::-1] if wrong else found]

    arrays = [_array(6, 4, 5, 5), _array(8, 4, 3, 3), _array(8)]
    found = SecondOpinion({"": 21}).judge(node, arrays, Evaluator(node, {"": 21}))
    assert found is not None
    assert found.verdict is (Verdict.DIFFERS if wrong else Verdict.AGREES)
    assert set(seen) == {(2, 2, 3, 3)}


def test_a_part_takes_one_core() -> None:
    assert blocks.on_cores(range(4), lambda _: blocks.cores()) == [1] * 4
    assert blocks.cores() == CORES
    assert blocks.on_cores([0], lambda _: blocks.cores()) == [CORES]


def test_copies_keep_their_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK", 1)
    source = _array(2, 9, 8)
    for target in (np.empty((2, 9, 8)), np.empty((8, 9, 2)).T, np.empty((1, 2, 9, 8))[0]):
        blocks.put(target, source)
        assert np.array_equal(target, source)
    whole = np.zeros(())
    blocks.put(whole, np.ones(()))
    assert whole == 1
