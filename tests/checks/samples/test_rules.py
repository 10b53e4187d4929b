"""Rules by which a few samples stand for a batch: of every node what it gives for all, cut to the few."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray

from wpk.checks.float64_nodes import NodeEvaluator
from wpk.checks.samples.batch import Along, Batch, NotAloneError
from wpk.checks.samples.few import FewSamples
from wpk.checks.samples.rules import RULES, way_of

BATCH = Batch(6, 2)
OPSET = 20

Array = NDArray[Any]
Shape = Sequence[int]


def drawn(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape)


def ints(*numbers: int) -> Array:
    return np.array(numbers, np.int64)


def same(*shape: int, axis: int = 0, times: int = 1) -> Array:
    """A constant that repeats the same for every sample."""
    own = shape[axis] // (BATCH.count * times)
    one = drawn(*shape[:axis], times, 1, own, *shape[axis + 1 :], seed=3)
    return np.repeat(one, BATCH.count, axis + 1).reshape(shape)


def node_of(op: str, count: int, outputs: int = 1, **attributes: Any) -> onnx.NodeProto:
    names = [f"x{i}" for i in range(count)]
    made = [f"y{i}" for i in range(outputs)]
    return onnx.helper.make_node(op, names, made, name=op, **attributes)


def checked(
    op: str,
    arrays: Sequence[Array | None],
    along: Mapping[int, Along],
    outputs: int = 1,
    **attributes: Any,
) -> Along | None:
    """Evaluate a node for all samples and for a few, compare these, and return where they lie."""
    node = node_of(op, len(arrays), outputs, **attributes)
    for place, array in enumerate(arrays):
        if array is None:
            node.input[place] = ""
    evaluate = NodeEvaluator(node, {"": OPSET})
    few = FewSamples(BATCH, {f"x{place}": where for place, where in along.items()})
    some = [
        BATCH.part(array, along[place]) if array is not None and place in along else array
        for place, array in enumerate(arrays)
    ]
    way = few.way(node, some)
    whole, found = evaluate(arrays), evaluate(way.operands(some))
    assert len(whole) == len(found) == outputs
    for name, one, other in zip(node.output, whole, found, strict=True):
        where = few.along[name]
        expected = one if where is None else BATCH.part(one, where)
        assert expected.shape == other.shape
        np.testing.assert_allclose(
            np.asarray(other, float), np.asarray(expected, float), rtol=1e-13, atol=1e-13
        )
    return few.along[node.output[0]]


A, B = Along(0), Along(1)
WITHIN = Along(0, 5)
"""Samples of [5 * 6, ...]: words of six sentences, word by word."""

IMAGE = drawn(6, 4, 5, 7)
CASES: list[tuple[str, list[Array | None], dict[int, Along], dict[str, Any], Along | None]] = [
    ("Relu", [drawn(6, 4)], {0: A}, {}, A),
    ("Add", [drawn(6, 4), drawn(6, 1)], {0: A, 1: A}, {}, A),
    ("Add", [drawn(5, 6, 4), drawn(6, 1)], {0: B, 1: A}, {}, B),
    ("Mul", [drawn(6, 4), drawn(4)], {0: A}, {}, A),
    ("Mul", [drawn(6, 4), same(6, 4)], {0: A}, {}, A),
    ("Mul", [same(24, 4, axis=0), drawn(24, 4)], {1: A}, {}, A),
    ("Mul", [drawn(30, 4), same(30, 4, times=5)], {0: WITHIN}, {}, WITHIN),
    ("Where", [drawn(6, 4) > 0, drawn(1, 4), drawn(6, 4)], {0: A, 2: A}, {}, A),
    ("Clip", [drawn(6, 4), np.array(-0.5), None], {0: A}, {}, A),
    ("Cast", [drawn(6, 4)], {0: A}, {"to": onnx.TensorProto.FLOAT16}, A),
    ("MatMul", [drawn(6, 5, 4), drawn(4, 3)], {0: A}, {}, A),
    ("MatMul", [drawn(6, 4), drawn(4, 3)], {0: A}, {}, A),
    ("MatMul", [drawn(30, 4), drawn(4, 3)], {0: WITHIN}, {}, WITHIN),
    ("MatMul", [drawn(6, 5, 4), drawn(6, 4, 3)], {0: A, 1: A}, {}, A),
    ("MatMul", [drawn(2, 6, 5, 4), drawn(6, 4, 3)], {0: B, 1: A}, {}, B),
    ("MatMul", [drawn(6, 5, 4), same(6, 4, 3)], {0: A}, {}, A),
    ("MatMul", [drawn(3, 4), drawn(2, 4, 6)], {1: Along(2)}, {}, Along(2)),
    ("MatMul", [drawn(6, 4), drawn(3, 4, 2)], {0: A}, {}, B),
    ("Gemm", [drawn(6, 4), drawn(3, 4), drawn(3)], {0: A}, {"transB": 1}, A),
    ("Gemm", [drawn(6, 4), drawn(4, 3), same(6, 3)], {0: A}, {}, A),
    ("Gemm", [drawn(30, 4), drawn(4, 3)], {0: WITHIN}, {}, WITHIN),
    ("Conv", [IMAGE, drawn(3, 4, 3, 3), drawn(3)], {0: A}, {"pads": [1] * 4}, A),
    ("ConvTranspose", [IMAGE, drawn(4, 2, 3, 3)], {0: A}, {}, A),
    ("MaxPool", [IMAGE], {0: A}, {"kernel_shape": [2, 2]}, A),
    ("AveragePool", [IMAGE], {0: A}, {"kernel_shape": [2, 2]}, A),
    ("GlobalAveragePool", [IMAGE], {0: A}, {}, A),
    ("GlobalMaxPool", [IMAGE], {0: A}, {}, A),
    ("BatchNormalization", [IMAGE, *[np.abs(drawn(4))] * 4], {0: A}, {}, A),
    ("InstanceNormalization", [IMAGE, drawn(4), drawn(4)], {0: A}, {}, A),
    ("GroupNormalization", [IMAGE, drawn(2), drawn(2)], {0: A}, {"num_groups": 2}, A),
    ("LRN", [IMAGE], {0: A}, {"size": 3}, A),
    ("DepthToSpace", [IMAGE], {0: A}, {"blocksize": 2}, A),
    ("SpaceToDepth", [drawn(6, 1, 4, 4)], {0: A}, {"blocksize": 2}, A),
    ("Resize", [IMAGE, None, np.array([1, 1, 2, 2], np.float32)], {0: A}, {}, A),
    ("LayerNormalization", [drawn(6, 5, 4), drawn(4), drawn(4)], {0: A}, {}, A),
    ("LayerNormalization", [drawn(5, 6, 4), drawn(4)], {0: B}, {"axis": -1}, B),
    ("Softmax", [drawn(6, 5, 4)], {0: A}, {"axis": 2}, A),
    ("LogSoftmax", [drawn(6, 5, 4)], {0: A}, {"axis": 1}, A),
    ("LpNormalization", [drawn(6, 4)], {0: A}, {"axis": 1, "p": 2}, A),
    ("ReduceMean", [drawn(3, 6, 4), ints(0)], {0: B}, {"keepdims": 0}, A),
    ("ReduceSum", [drawn(3, 6, 4), ints(-1)], {0: B}, {}, B),
    ("ReduceMax", [drawn(3, 6), None], {0: B}, {"noop_with_empty_axes": 1}, B),
    ("ArgMax", [drawn(3, 6)], {0: B}, {"axis": 0, "keepdims": 0}, A),
    ("CumSum", [drawn(6, 4), np.array(1)], {0: A}, {}, A),
    ("QuantizeLinear", [drawn(6, 4), np.array(0.1, np.float32)], {0: A}, {}, A),
    (
        "DequantizeLinear",
        [np.arange(24, dtype=np.int8).reshape(6, 4), np.ones(4, np.float32)],
        {0: A},
        {"axis": 1},
        A,
    ),
    ("Transpose", [drawn(6, 5, 4)], {0: A}, {"perm": [2, 1, 0]}, Along(2)),
    ("Transpose", [drawn(30, 4)], {0: WITHIN}, {}, Along(1, 5)),
    ("Reshape", [drawn(6, 12), ints(6, 3, 4)], {0: A}, {}, A),
    ("Reshape", [drawn(6, 12), ints(0, -1)], {0: A}, {}, A),
    ("Reshape", [drawn(6, 12), ints(-1, 4)], {0: A}, {}, A),
    ("Reshape", [drawn(18, 4), ints(6, 3, 4)], {0: A}, {}, A),
    ("Reshape", [drawn(5, 6, 4), ints(30, 4)], {0: B}, {}, WITHIN),
    ("Reshape", [drawn(30, 4), ints(1, 5, 6, 2, 2)], {0: WITHIN}, {}, Along(2)),
    ("Reshape", [drawn(5, 18, 4), ints(5, 6, 12)], {0: B}, {}, B),
    ("Flatten", [drawn(6, 3, 4)], {0: A}, {}, A),
    ("Flatten", [drawn(5, 6, 4)], {0: B}, {"axis": 2}, WITHIN),
    ("Flatten", [drawn(5, 6, 4)], {0: B}, {"axis": 1}, Along(1)),
    ("Squeeze", [drawn(1, 6, 1), ints(0)], {0: B}, {}, A),
    ("Squeeze", [drawn(1, 6, 1)], {0: B}, {}, A),
    ("Unsqueeze", [drawn(6, 4), ints(0, -1)], {0: A}, {}, B),
    ("Slice", [drawn(6, 4), ints(1), ints(3), ints(1)], {0: A}, {}, A),
    ("Slice", [drawn(6, 4), ints(0, 1), ints(2**31, 4)], {0: A}, {}, A),
    ("Pad", [drawn(6, 4), ints(0, 1, 0, 2)], {0: A}, {}, A),
    ("Pad", [drawn(6, 4), ints(1, 2), None, ints(1)], {0: A}, {}, A),
    ("Gather", [drawn(6, 4), ints(3, 1)], {0: A}, {"axis": 1}, A),
    ("Gather", [drawn(4, 6), ints(1)[0]], {0: B}, {"axis": 0}, A),
    ("Gather", [drawn(9, 4), np.arange(12).reshape(6, 2) % 9], {1: A}, {}, A),
    ("Gather", [drawn(18, 4), np.arange(18).reshape(6, 3)[:, ::-1].ravel()], {0: A}, {}, A),
    ("Concat", [drawn(6, 4), drawn(6, 3), same(6, 1)], {0: A, 1: A}, {"axis": 1}, A),
    ("Expand", [drawn(6, 1), ints(6, 4)], {0: A}, {}, A),
    ("Expand", [drawn(6, 1), ints(3, 1, 4)], {0: A}, {}, B),
    ("Tile", [drawn(6, 4), ints(1, 2)], {0: A}, {}, A),
    ("Trilu", [drawn(6, 4, 4)], {0: A}, {}, A),
    ("Shape", [drawn(6, 4)], {0: A}, {}, None),
    ("Size", [drawn(30, 4)], {0: WITHIN}, {}, None),
    ("Identity", [drawn(6, 4)], {0: A}, {}, A),
    ("CastLike", [drawn(6, 4), np.array(0.0)], {0: A}, {}, A),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_a_few_samples_are_those_of_the_whole_batch(
    case: tuple[str, list[Array | None], dict[int, Along], dict[str, Any], Along | None],
) -> None:
    op, arrays, along, attributes, expected = case
    assert checked(op, arrays, along, **attributes) == expected


def test_all_outputs_hold_samples() -> None:
    assert checked("Split", [drawn(6, 4)], {0: A}, outputs=2, axis=1, num_outputs=2) == A
    assert checked("TopK", [drawn(6, 4), ints(2)], {0: A}, outputs=2) == A


def test_every_rule_is_tried() -> None:
    element_wise = {"Relu", "Add", "Mul", "Where", "Clip", "Cast", "Identity"}
    reductions = {"ReduceMean", "ReduceSum", "ReduceMax"}
    tried = {case[0] for case in CASES} | {"Split", "TopK"}
    rule = {RULES[op] for op in element_wise | reductions}
    assert {op for op, own in RULES.items() if own not in rule} - tried == {
        "ArgMin",
        "RMSNormalization",
    }


SHARES = [
    ("Add", [drawn(6, 4), drawn(6, 4)], {0: A}, {}),  # differs between samples
    ("Add", [drawn(6, 6), drawn(6, 6)], {0: A, 1: B}, {}),
    ("Add", [drawn(6, 4), drawn(6)], {0: A}, {"broadcast": 1, "axis": 0}),
    ("Add", [drawn(30, 4), drawn(30, 4)], {0: WITHIN, 1: A}, {}),
    ("Mul", [drawn(6, 4), same(30, 4)], {0: A}, {}),
    ("MatMul", [drawn(3, 6), drawn(6, 4)], {0: B}, {}),
    ("MatMul", [drawn(3, 6), drawn(6, 4)], {1: A}, {}),
    ("MatMul", [drawn(6, 4), drawn(4, 6)], {0: A, 1: B}, {}),
    ("MatMul", [drawn(6, 6, 4), drawn(6, 4, 3)], {0: B, 1: A}, {}),
    ("Gemm", [drawn(4, 6), drawn(4, 3)], {0: B}, {"transA": 1}),
    ("Gemm", [drawn(6, 4), drawn(4, 3), drawn(6, 3)], {0: A}, {}),
    ("Conv", [drawn(1, 6, 5, 5), drawn(3, 6, 3, 3)], {0: B}, {}),
    ("Conv", [drawn(1, 4, 5, 5), drawn(6, 4, 3, 3)], {1: A}, {}),
    ("BatchNormalization", [IMAGE, *[drawn(4)] * 4], {0: A}, {"training_mode": 1}),
    ("LayerNormalization", [drawn(6, 4), drawn(6, 4)], {0: A}, {"axis": 0}),
    ("LayerNormalization", [drawn(6, 4), drawn(6, 4)], {0: A}, {}),
    ("Softmax", [drawn(6, 4)], {0: A}, {"axis": 0}),
    ("Softmax", [drawn(4, 6)], {0: B}, {}),
    ("ReduceMean", [drawn(6, 4), ints(0)], {0: A}, {}),
    ("ReduceMean", [drawn(6, 4)], {0: A}, {}),
    ("ArgMax", [drawn(6, 4)], {0: A}, {}),
    ("CumSum", [drawn(6, 4), np.array(0)], {0: A}, {}),
    ("TopK", [drawn(6, 4), ints(2)], {0: A}, {"axis": 0}),
    ("Split", [drawn(6, 4)], {0: A}, {}),
    ("DequantizeLinear", [drawn(6, 4), drawn(6)], {0: A}, {"axis": 0}),
    ("Reshape", [drawn(6, 4), ints(2, 3, 4)], {0: A}, {}),
    ("Reshape", [drawn(6, 4), ints(4, 6)], {0: A}, {}),
    ("Reshape", [drawn(6, 4), ints(2, 12)], {0: A}, {}),
    ("Slice", [drawn(6, 4), ints(1), ints(9), ints(0)], {0: A}, {}),
    ("Slice", [drawn(6, 4), ints(0), ints(3), ints(0)], {0: A}, {}),
    ("Slice", [drawn(6, 4), ints(-1), ints(-9), ints(0), ints(-1)], {0: A}, {}),
    ("Pad", [drawn(6, 4), ints(0, 0, 1, 0)], {0: A}, {}),
    ("Gather", [drawn(6, 4), ints(1, 0)], {0: A}, {}),
    ("Gather", [drawn(6, 4), ints(1, 0, 2, 3, 4, 5)], {0: A}, {}),
    ("Gather", [drawn(6, 4), drawn(6) > 9], {0: A, 1: A}, {}),
    ("Concat", [drawn(6, 4), drawn(6, 4)], {0: A, 1: A}, {"axis": 0}),
    ("Concat", [drawn(6, 4), drawn(6, 1)], {0: A}, {"axis": 1}),
    ("Expand", [drawn(6, 1), ints(3, 4)], {0: A}, {}),
    ("Tile", [drawn(6, 4), ints(2, 1)], {0: A}, {}),
    ("Trilu", [drawn(6, 4)], {0: A}, {}),
    ("MaxPool", [drawn(4, 6, 5)], {0: B}, {"kernel_shape": [2]}),
    ("Resize", [IMAGE, None, np.array([2, 1, 1, 1], np.float32)], {0: A}, {}),
    ("Resize", [IMAGE, None, None, ints(6, 4, 10, 14)], {0: A}, {}),
    ("NonZero", [drawn(6, 4)], {0: A}, {}),
    ("Einsum", [drawn(6, 4)], {0: A}, {"equation": "ij->j"}),
]  # fmt: skip


@pytest.mark.parametrize("case", SHARES, ids=lambda case: case[0])
def test_what_may_mix_samples_is_refused(
    case: tuple[str, list[Array | None], dict[int, Along], dict[str, Any]],
) -> None:
    op, arrays, along, attributes = case
    node = node_of(op, len(arrays), **attributes)
    few = FewSamples(BATCH, {f"x{place}": where for place, where in along.items()})
    some = [
        BATCH.part(array, along[place]) if array is not None and place in along else array
        for place, array in enumerate(arrays)
    ]
    with pytest.raises(NotAloneError):
        few.way(node, some).operands(some)


def test_indices_of_a_pool_count_all_samples() -> None:
    node = node_of("MaxPool", 1, 2, kernel_shape=[2, 2])
    with pytest.raises(NotAloneError):
        FewSamples(BATCH, {"x0": A}).way(node, [IMAGE[:2]])


def test_what_holds_no_samples_may_be_computed_by_anything() -> None:
    assert way_of(BATCH, node_of("NonZero", 1), [None]).along is None
    few = FewSamples(BATCH)
    assert few.way(node_of("NonZero", 1), [drawn(6)]).changes == {}
    assert few.along == {"y0": None}
