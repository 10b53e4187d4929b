"""Which bodies are cut along the batch or along words, and that the parts give what the whole does."""

import numpy as np
import onnx
import pytest
from onnx.helper import make_node
from threadpoolctl import threadpool_info, threadpool_limits

from wpk.blocks import PART
from wpk.checks import body as body_module
from wpk.checks.body import NodeBody
from wpk.checks.by_sample import Cut, chain_along, cut_of_chain, in_parts
from wpk.checks.float64_nodes import Array
from wpk.dtypes import DType

RNG = np.random.default_rng(0)
N = 5


def _array(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


def _target(*shape: int) -> onnx.NodeProto:
    return make_node("Constant", [], ["t"], value_ints=shape)


def _heads(values: str, heads: str, perm: list[int]) -> list[onnx.NodeProto]:
    return [
        make_node("Reshape", [values, "t"], [f"{heads}_rows"], allowzero=1),
        make_node("Transpose", [f"{heads}_rows"], [heads], perm=perm),
    ]


Case = tuple[list[onnx.NodeProto], dict[str, Array], dict[str, Array]]

CUT: dict[str, Case] = {
    "a convolution with what follows it, channels last": (
        [
            make_node("Transpose", ["x"], ["t"], perm=[0, 3, 1, 2]),
            make_node("Conv", ["t", "w", "b"], ["c"], pads=[1, 1, 1, 1]),
            make_node("Add", ["c", "r"], ["s"]),
            make_node("Relu", ["s"], ["a"]),
            make_node("Transpose", ["a"], ["y"], perm=[0, 2, 3, 1]),
        ],
        {"x": _array(N, 6, 7, 4), "r": _array(N, 3, 6, 7)},
        {"w": _array(3, 4, 3, 3), "b": _array(3)},
    ),
    "elements of any operator that the table knows": (
        [
            make_node("Cos", ["x"], ["c"]),
            make_node("GreaterOrEqual", ["c", "x"], ["g"]),
            make_node("Not", ["g"], ["n"]),
            make_node("Where", ["n", "c", "x"], ["y"]),
        ],
        {"x": _array(N, 8)},
        {},
    ),
    "windows": (
        [
            make_node("MaxPool", ["x"], ["m"], kernel_shape=[2, 2]),
            make_node("GlobalAveragePool", ["m"], ["y"]),
        ],
        {"x": _array(N, 2, 6, 6)},
        {},
    ),
    "rows times weights, a limit for all of them": (
        [make_node("MatMul", ["x", "w"], ["p"]), make_node("Max", ["p", "l"], ["y"])],
        {"x": _array(N, 8)},
        {"w": _array(8, 3), "l": _array(1, 3)},
    ),
    "matrices of a sample": (
        [make_node("MatMul", ["x", "z"], ["p"]), make_node("Softmax", ["p"], ["y"], axis=-1)],
        {"x": _array(N, 4, 8), "z": _array(N, 8, 3)},
        {},
    ),
    "attention over heads": (
        [
            _target(N, 4, -1, 3),
            make_node("Constant", [], ["zero"], value_float=0.0),
            *_heads("x", "q", [0, 2, 1, 3]),
            *_heads("k", "kt", [0, 2, 3, 1]),
            *_heads("v", "vh", [0, 2, 1, 3]),
            make_node("MatMul", ["q", "kt"], ["s"]),
            make_node("Add", ["s", "m"], ["sm"]),
            make_node("Softmax", ["sm"], ["p"], axis=-1),
            make_node("IsNaN", ["p"], ["n"]),
            make_node("Where", ["n", "zero", "p"], ["pz"]),
            make_node("MatMul", ["pz", "vh"], ["o"]),
            make_node("Transpose", ["o"], ["ot"], perm=[0, 2, 1, 3]),
            make_node("Reshape", ["ot", "back"], ["y"]),
        ],
        {"x": _array(N, 4, 6), "k": _array(N, 4, 6), "v": _array(N, 4, 6)},
        {"m": _array(1, 1, 4, 4), "back": np.array([0, 4, -1])},
    ),
    "a softmax that does not say its axis": (
        [make_node("Softmax", ["x"], ["y"])],
        {"x": _array(N, 8)},
        {},
    ),
    "a vector that is transposed": ([make_node("Transpose", ["x"], ["y"])], {"x": _array(N)}, {}),
    "weights that are converted": (
        [
            make_node("Cast", ["w"], ["wide"], to=onnx.TensorProto.DOUBLE),
            make_node("MatMul", ["x", "wide"], ["y"]),
        ],
        {"x": _array(N, 8)},
        {"w": _array(8, 3)},
    ),
    "rows that are normalised by stored moments": (
        [
            make_node("Slice", ["m", "zero", "one", "last"], ["means"]),
            make_node("Slice", ["m", "one", "two", "last"], ["squares"]),
            make_node("ReduceMean", ["means", "third"], ["mean"]),
            make_node("ReduceMean", ["squares", "third"], ["square"], keepdims=0),
            make_node("Squeeze", ["mean", "third"], ["flat"]),
            make_node("Sub", ["x", "flat"], ["d"]),
            make_node("Mul", ["square", "square"], ["positive"]),
            make_node("Add", ["positive", "half"], ["more"]),
            make_node("Div", ["d", "more"], ["n"]),
            make_node("Concat", ["n", "x"], ["y"], axis=-1),
        ],
        {"x": _array(N, 4, 6), "m": _array(N, 4, 3, 2)},
        {
            "zero": np.array([0]),
            "one": np.array([1]),
            "two": np.array([2]),
            "last": np.array([-1]),
            "third": np.array([2]),
            "half": np.array(0.5, np.float32),
        },
    ),
    "a part of every sample": (
        [make_node("Split", ["x", "sizes"], ["y", "rest"], axis=1)],
        {"x": _array(N, 8)},
        {"sizes": np.array([3, 5])},
    ),
}

WORDS: dict[str, Case] = {
    "a norm and a product, heads apart": (
        [
            make_node("Constant", [], ["t"], value_ints=[2, N, 2, -1]),
            make_node("LayerNormalization", ["x", "g"], ["n"]),
            make_node("MatMul", ["n", "w"], ["p"]),
            make_node("Add", ["p", "b"], ["s"]),
            make_node("Add", ["s", "x"], ["r"]),
            make_node("Reshape", ["r", "t"], ["h"]),
            make_node("Softmax", ["h"], ["y"], axis=-1),
        ],
        {"x": _array(2, N, 8)},
        {"g": _array(8), "w": _array(8, 8), "b": _array(2, 1, 8)},
    ),
    "matrices of a head": (
        [make_node("MatMul", ["x", "z"], ["y"])],
        {"x": _array(2, N, 3, 4), "z": _array(2, N, 4, 3)},
        {},
    ),
    "words that are joined, some channels of each": (
        [
            make_node("Split", ["x", "sizes"], ["a", "b"], axis=-1),
            make_node("Concat", ["b", "a"], ["y"], axis=0),
        ],
        {"x": _array(1, N, 8)},
        {"sizes": np.array([4, 4])},
    ),
}
"""Cut along axis 1."""

NO_WORDS: dict[str, Case] = {
    "matrices of words": (
        [make_node("MatMul", ["x", "z"], ["y"])],
        {"x": _array(2, N, N), "z": _array(2, N, N)},
        {},
    ),
    "a softmax that may begin with words": (
        [make_node("Softmax", ["x"], ["y"])],
        {"x": _array(2, N, 8)},
        {},
    ),
    "a norm over words": (
        [make_node("LayerNormalization", ["x", "g"], ["y"], axis=1)],
        {"x": _array(2, N, 8)},
        {"g": _array(N, 8)},
    ),
    "a convolution": (
        [make_node("Conv", ["x", "w"], ["y"])],
        {"x": _array(2, N, 6)},
        {"w": _array(3, N, 1)},
    ),
    "words that move": (
        [make_node("Transpose", ["x"], ["y"], perm=[0, 2, 1])],
        {"x": _array(2, N, 8)},
        {},
    ),
    "a reshape that joins words of samples": (
        [_target(1, 2 * N, 8), make_node("Reshape", ["x", "t"], ["y"])],
        {"x": _array(2, N, 8)},
        {},
    ),
    "a number for each word": (
        [make_node("Mul", ["x", "c"], ["y"])],
        {"x": _array(2, N, 8)},
        {"c": _array(N, 1)},
    ),
    "samples of a constant where there is one": (
        [make_node("Mul", ["x", "c"], ["y"])],
        {"x": _array(1, N, 8)},
        {"c": _array(3, 1, 8)},
    ),
    "words of other samples": (
        [make_node("Add", ["x", "z"], ["y"])],
        {"x": _array(2, N, 8), "z": _array(1, N, 8)},
        {},
    ),
    "a mean over words": (
        [make_node("ReduceMean", ["x", "a"], ["y"])],
        {"x": _array(2, N, 8)},
        {"a": np.array([1])},
    ),
    "a mean over samples, which moves words": (
        [make_node("ReduceMean", ["x", "a"], ["y"], keepdims=0)],
        {"x": _array(2, N, 8)},
        {"a": np.array([0])},
    ),
    "a mean over everything": (
        [make_node("ReduceMean", ["x"], ["y"])],
        {"x": _array(2, N, 8)},
        {},
    ),
    "some words": (
        [make_node("Slice", ["x", "a", "b", "a"], ["y"])],
        {"x": _array(2, N, 8)},
        {"a": np.array([1]), "b": np.array([3])},
    ),
    "some words, of axes that nothing names": (
        [make_node("Slice", ["x", "a", "b"], ["y"])],
        {"x": _array(2, N, 8)},
        {"a": np.array([0, 1]), "b": np.array([2, 3])},
    ),
    "words behind words": (
        [make_node("Concat", ["x", "x"], ["y"], axis=1)],
        {"x": _array(2, N, 8)},
        {},
    ),
    "words behind a constant": (
        [make_node("Concat", ["x", "c"], ["y"], axis=2)],
        {"x": _array(2, N, 8)},
        {"c": _array(2, N, 8)},
    ),
    "an axis in front of words that goes": (
        [make_node("Squeeze", ["x", "a"], ["y"])],
        {"x": _array(1, N, 8)},
        {"a": np.array([0])},
    ),
}
"""Not cut along axis 1."""

WHOLE: dict[str, Case] = {
    "the batch moves": (
        [make_node("Transpose", ["x"], ["y"], perm=[1, 0])],
        {"x": _array(N, 8)},
        {},
    ),
    "the batch moves where nothing says so": (
        [make_node("Transpose", ["x"], ["y"])],
        {"x": _array(N, 8)},
        {},
    ),
    "a softmax over the batch, counted from the end": (
        [make_node("Softmax", ["x"], ["y"], axis=-2)],
        {"x": _array(N, 8)},
        {},
    ),
    "weights that are transposed": (
        [make_node("Transpose", ["w"], ["t"]), make_node("MatMul", ["x", "t"], ["y"])],
        {"x": _array(N, 8)},
        {"w": _array(3, 8)},
    ),
    "a vector times weights": (
        [make_node("MatMul", ["x", "w"], ["y"])],
        {"x": _array(N)},
        {"w": _array(N, 3)},
    ),
    "rows times a vector": (
        [make_node("MatMul", ["x", "w"], ["y"])],
        {"x": _array(N, 8)},
        {"w": _array(8)},
    ),
    "rows times several matrices": (
        [make_node("MatMul", ["x", "w"], ["y"])],
        {"x": _array(N, 8)},
        {"w": _array(2, 8, 3)},
    ),
    "a softmax over the batch": (
        [make_node("Softmax", ["x"], ["y"], axis=0)],
        {"x": _array(N, 8)},
        {},
    ),
    "a constant for each sample": (
        [make_node("Mul", ["x", "c"], ["y"])],
        {"x": _array(N, 8)},
        {"c": _array(N, 8)},
    ),
    "a matrix product of the batch": (
        [make_node("MatMul", ["x", "z"], ["y"])],
        {"x": _array(N, N), "z": _array(N, 3)},
        {},
    ),
    "weights that are computed": (
        [make_node("Conv", ["x", "z"], ["y"])],
        {"x": _array(N, N, 6, 6), "z": _array(N, N, 3, 3)},
        {},
    ),
    "a vector beside a matrix": (
        [make_node("Add", ["x", "z"], ["y"])],
        {"x": _array(N, N), "z": _array(N)},
        {},
    ),
    "a reshape that joins samples": (
        [_target(-1, 4), make_node("Reshape", ["x", "t"], ["y"])],
        {"x": _array(N, 8)},
        {},
    ),
    "a reshape that halves samples": (
        [_target(2 * N, 4), make_node("Reshape", ["x", "t"], ["y"])],
        {"x": _array(N, 8)},
        {},
    ),
    "a reshape to a shape that is computed": (
        [
            make_node("Add", ["t0", "t0"], ["t"]),
            make_node("Reshape", ["x", "t"], ["y"]),
        ],
        {"x": _array(N, 8)},
        {"t0": np.array([0, 4])},
    ),
    "a reshape of which a zero means nothing": (
        [_target(0, 0), make_node("Reshape", ["x", "t"], ["y"], allowzero=1)],
        {"x": _array(N, 0)},
        {},
    ),
    "a reshape to nothing": (
        [_target(N, 0), make_node("Reshape", ["x", "t"], ["y"], allowzero=1)],
        {"x": _array(N, 0)},
        {},
    ),
    "samples beside what a reshape made of them": (
        [_target(N, 1, N), make_node("Reshape", ["x", "t"], ["r"]), make_node("Add", "xr", ["y"])],
        {"x": _array(N, N)},
        {},
    ),
    "a constant of higher rank": (
        [make_node("Add", ["x", "c"], ["y"])],
        {"x": _array(N, 8)},
        {"c": _array(1, N, 8)},
    ),
    "the batch is split": (
        [make_node("Split", ["x", "sizes"], ["y", "rest"], axis=0)],
        {"x": _array(N, 8)},
        {"sizes": np.array([2, N - 2])},
    ),
    "the batch is split where nothing says so": (
        [make_node("Split", ["x", "sizes"], ["y", "rest"])],
        {"x": _array(N, 8)},
        {"sizes": np.array([2, N - 2])},
    ),
    "weights come out": (
        [make_node("Neg", ["w"], ["y"]), make_node("Relu", ["x"], ["z"])],
        {"x": _array(N, 8)},
        {"w": _array(N, 8)},
    ),
    "an operator that is not known": (
        [make_node("Flatten", ["x"], ["y"], axis=0)],
        {"x": _array(N, 8)},
        {},
    ),
}


@pytest.mark.parametrize("case", [*CUT, *WORDS])
def test_is_cut_and_gives_what_the_whole_gives(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    axis, (nodes, batched, fixed) = (0, CUT[case]) if case in CUT else (1, WORDS[case])
    chain = chain_along(nodes, batched, fixed, axis)
    assert chain is not None
    assert chain.beginning[axis] == N
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1, 2})
    monkeypatch.setattr(body_module, "cut_of_chain", lambda *_: Cut(axis, N))
    parts = _stored(nodes, batched, fixed)
    monkeypatch.setattr(body_module, "cut_of_chain", lambda *_: None)
    whole = _stored(nodes, batched, fixed)
    np.testing.assert_allclose(parts.value, whole.value, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(parts.tolerance, whole.tolerance, rtol=1e-9)
    assert parts.memory.dtype == np.float16
    assert parts.memory.shape == whole.memory.shape


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_two_samples_are_enough(count: int) -> None:
    node = make_node("Relu", ["x"], ["y"])
    cut = Cut(0, count) if count > 1 else None
    assert cut_of_chain([node], {"x": _array(count, 1)}, {}) == cut
    assert cut_of_chain([node], {"x": _array(count)}, {}) == cut
    assert cut_of_chain([node], {"x": _array()}, {}) is None


@pytest.mark.parametrize("case", [*WHOLE, *NO_WORDS])
def test_stays_whole(case: str) -> None:
    axis, found = (0, WHOLE[case]) if case in WHOLE else (1, NO_WORDS[case])
    assert chain_along(*found, axis) is None


@pytest.mark.parametrize(
    ("cores", "shape", "cut"),
    [
        (2, (4, 9, 8), Cut(0, 4)),
        (3, (4, 9, 8), Cut(1, 9)),
        (8, (4, 9, 8), Cut(1, 9)),
        (8, (9, 4, 8), Cut(0, 9)),
        (1, (1, 9, 8), Cut(1, 9)),
    ],
)
def test_words_are_cut_where_samples_are_fewer_than_cores_need(
    cores: int, shape: tuple[int, ...], cut: Cut, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: range(cores))
    nodes = [make_node("MatMul", ["x", "w"], ["y"])]
    assert cut_of_chain(nodes, {"x": _array(*shape)}, {"w": _array(8, 3)}) == cut


@pytest.mark.parametrize(("cores", "cut"), [(2, Cut(0, 4)), (4, Cut(0, 4)), (5, None)])
def test_matrices_are_left_to_their_rows_where_samples_are_fewer_than_cores(
    cores: int, cut: Cut | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: range(cores))
    nodes = [make_node("MatMul", ["x", "z"], ["y"])]
    assert cut_of_chain(nodes, {"x": _array(4, 9, 8), "z": _array(4, 8, 9)}, {}) == cut


def test_parts_that_are_exchanged_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison above can fail."""
    nodes, batched, fixed = CUT["windows"]
    right = _stored(nodes, batched, fixed).value
    monkeypatch.setattr(body_module, "in_parts", lambda n, size, f: f(slice(None, None, -1)))
    assert not np.allclose(_stored(nodes, batched, fixed).value, right)


@pytest.mark.parametrize(
    ("cores", "count", "size", "parts"),
    [
        (3, 7, 7, [(0, 2), (2, 4), (4, 7)]),
        (8, 2, 2, [(0, 1), (1, 2)]),
        (1, 3, 3, [(0, 3)]),
        (1, 4, 2 * PART, [(0, 2), (2, 4)]),
        (2, 3, 9 * PART, [(0, 1), (1, 2), (2, 3)]),
    ],
)
def test_a_core_has_a_part_none_is_empty_and_none_is_larger_than_it_need_be(
    cores: int,
    count: int,
    size: int,
    parts: list[tuple[int, int]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: range(cores) if pid == 0 else [])
    seen: list[tuple[int, int]] = []

    def evaluate(part: slice) -> list[Array]:
        seen.append((part.start, part.stop))
        return [np.arange(part.start, part.stop)]

    (whole,) = in_parts(Cut(0, count), size, evaluate)
    assert sorted(seen) == parts
    assert whole.tolist() == list(range(count))


def test_an_error_in_a_part_is_the_callers() -> None:
    def evaluate(part: slice) -> list[Array]:
        if part.start:
            raise MemoryError("no memory")
        return [np.zeros(part.stop)]

    with pytest.raises(MemoryError, match="no memory"):
        in_parts(Cut(0, 4096), 4096, evaluate)


def _stored(nodes: list[onnx.NodeProto], batched: dict[str, Array], fixed: dict[str, Array]):
    names = [*batched, *fixed]
    opset = onnx.helper.make_opsetid("", 21)
    function = onnx.helper.make_function("wpk", "f", names, ["y"], nodes, [opset])
    call = make_node("f", names, ["y"], domain="wpk")
    arrays = [*batched.values(), *fixed.values()]
    weights = range(len(batched), len(names))
    (stored,) = NodeBody(call, function, {"": 21})(arrays, weights, 0.0, [DType.FP16])
    return stored


def test_parts_have_one_core_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Products of a part on all cores would be as many threads as the square of the cores."""
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1})
    seen: list[int] = []

    def evaluate(part: slice) -> list[Array]:
        seen.extend(each["num_threads"] for each in threadpool_info() if _is_blas(each))
        return [np.zeros(part.stop - part.start)]

    with threadpool_limits(2, "blas"):
        in_parts(Cut(0, 2), 2, evaluate)
        assert seen
        assert set(seen) == {1}
        assert {each["num_threads"] for each in threadpool_info() if _is_blas(each)} == {2}


def _is_blas(library: dict[str, object]) -> bool:
    return library["user_api"] == "blas"
