"""Operators of indices become problems that compute what ONNX Runtime does, with a free batch, too."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.reference
import onnxruntime
import pytest

import wpk
from wpk.dtypes import Precision
from wpk.errors import UnsupportedError
from wpk.lowering.model import lower_model

pytestmark = pytest.mark.usefixtures("warm_without_cubins")

H = '<ir_version: 8, opset_import: ["" : 18]>'

MODELS = {
    "elements of the middle": "(float[3,4,5] x, int64[3,2,5] i4) => (float[3,2,5] y) "
    "{ y = GatherElements<axis=1>(x, i4) }",
    "elements of a part": "(float[3,4,5] x, int32[2,3,9] i5) => (float[2,3,9] y) "
    "{ y = GatherElements<axis=-1>(x, i5) }",
    "elements of a free batch": "(float[N,4,5] x, int64[N,4,3] i5) => (float[N,4,3] y) "
    "{ y = GatherElements<axis=2>(x, i5) }",
    "rows of a turned tensor": "(float[N,5,4] x, int64[N,4,3] i5) => (float[N,4,3] y) "
    "{ t = Transpose<perm=[0,2,1]>(x) y = GatherElements<axis=2>(t, i5) }",
    "slices by tuples": "(float[3,4,5] x, int64[2,6,2] i3) => (float[2,6,5] y) { y = GatherND(x, i3) }",
    "rows of a batch": "(float[N,4,5] x, int64[N,6,1] i4) => (float[N,6,5] y) "
    "{ y = GatherND<batch_dims=1>(x, i4) }",
    "a free number of tuples": "(float[3,4,5] x, int64[N,3] i3) => (float[N] y) { y = GatherND(x, i3) }",
    "an element": "(float[3,4,5] x, int64[3] i3) => (float y) { y = GatherND(x, i3) }",
    "integers by elements": "(int64[3,4] z, int64[3,2] i4) => (int64[3,2] y) "
    "{ y = GatherElements<axis=1>(z, i4) }",
    "the first axis": "(float[3,4,5] t) => (int64[1,4,5] y) { y = ArgMax(t) }",
    "the last axis": "(float[N,4,5] t) => (int64[N,4] y) { y = ArgMin<axis=-1, keepdims=0>(t) }",
    "the last of equals": "(float[N,4,5] t) => (int64[N,4,1] y) "
    "{ y = ArgMax<axis=2, select_last_index=1>(t) }",
    "of everything": "(float[7] t) => (int64 y) { y = ArgMax<keepdims=0>(t) }",
    "the largest": "(float[N,4,9] t) => (float[N,4,3] v, int64[N,4,3] y) <int64[1] k = {3}> "
    "{ v, y = TopK(t, k) }",
    "places alone": "(float[N,4,9] t) => (int64[N,4,3] y) <int64[1] k = {3}> { v, y = TopK(t, k) }",
    "values alone": "(float[N,4,9] t) => (float[N,2,9] y) <int64[1] k = {2}> "
    "{ r = Neg(t) v, i = TopK<axis=1, largest=0>(r, k) y = Neg(v) }",
    "integers by rank": "(int64[3,8] z) => (int64[3,8] v, int64[3,8] y) <int64[1] k = {8}> "
    "{ v, y = TopK(z, k) }",
    "one for each class": "(int64[N,3] i6) => (float[N,3,6] y) <int64 d = {6}, float[2] v = {0, 1}> "
    "{ y = OneHot(i6, d, v) }",
    "classes in the middle": "(int64[N,3] i6) => (int64[N,4,3] y) "
    "<int64[1] d = {4}, int64[2] v = {5, 7}> { y = OneHot<axis=1>(i6, d, v) }",
    "sums of elements": "(float[N,4,5] x, int64[N,7,5] i4, float[N,7,5] u) => (float[N,4,5] y) "
    '{ y = ScatterElements<axis=1, reduction="add">(x, i4, u) }',
    "the largest of slices": "(float[3,4,5] x, int64[6,2] i3, float[6,5] u) => (float[3,4,5] y) "
    '{ y = ScatterND<reduction="max">(x, i3, u) }',
    "products by rows": "(float[3,4,5] x, int64[2,1] i3, float[2,4,5] u) => (float[3,4,5] y) "
    '{ y = ScatterND<reduction="mul">(x, i3, u) }',
    "running sums": "(float[N,4,5] x) => (float[N,4,5] y) <int64 a = {1}> { y = CumSum(x, a) }",
    "running sums from behind": "(float[N,4,5] x) => (float[N,4,5] y) <int32 a = {-1}> "
    "{ y = CumSum<exclusive=1, reverse=1>(x, a) }",
    "running sums of the batch": "(int64[3,4] z) => (int64[3,4] y) <int64 a = {0}> "
    "{ y = CumSum<exclusive=1>(z, a) }",
    "a row written": "(float[3,4] x, int64[1,4] i3, float[1,4] u) => (float[3,4] y) "
    "{ r = Relu(x) y = ScatterElements(r, i3, u) }",
}  # fmt: skip


def _drawn(name: str, shape: tuple[int, ...], dtype: Any) -> Any:
    rng = np.random.default_rng(len(name) + sum(shape))
    if name.startswith("i"):  # indices of an axis of so many
        size = int(name[1:])
        return rng.integers(-size, size, shape).astype(dtype)
    if name in "tz":  # with ties
        return rng.integers(-3, 4, shape).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


def _inputs(model: onnx.ModelProto, batch: int) -> dict[str, Any]:
    found = {}
    for each in model.graph.input:
        sizes = each.type.tensor_type.shape.dim
        shape = tuple(size.dim_value or batch for size in sizes)
        dtype = onnx.helper.tensor_dtype_to_np_dtype(each.type.tensor_type.elem_type)
        found[each.name] = _drawn(each.name, shape, dtype)
    return found


@pytest.mark.parametrize("name", MODELS)
def test_computes_what_onnx_runtime_does(
    name: str, tmp_path: Path, execute: Callable[..., dict[str, Any]]
) -> None:
    model = onnx.parser.parse_model(f"{H} g {MODELS[name]}")
    onnx.save(model, tmp_path / "model.onnx")
    program = lower_model(tmp_path / "model.onnx", {}, Precision.FP32).program
    for batch in (1, 2, 5) if "N" in MODELS[name] else (1,):
        inputs = _inputs(model, batch)
        expected = onnxruntime.InferenceSession(model.SerializeToString()).run(None, inputs)
        actual = execute(program, inputs)
        for output, right in zip(model.graph.output, expected, strict=True):
            np.testing.assert_allclose(actual[output.name], right, rtol=1e-6, atol=1e-6)
            assert actual[output.name].shape == right.shape


@pytest.mark.parametrize("name", [
    "elements of a free batch", "rows of a batch", "the largest", "one for each class",
    "sums of elements", "running sums from behind",
])  # fmt: skip
def test_a_plan_computes_it(name: str, tmp_path: Path) -> None:
    model = onnx.parser.parse_model(f"{H} g {MODELS[name]}")
    path = tmp_path / "model.plan"
    onnx.save(model, tmp_path / "model.onnx")
    wpk.optimize(tmp_path / "model.onnx", path, target="h200", search="static")
    inputs = _inputs(model, 3)
    expected = onnxruntime.InferenceSession(model.SerializeToString()).run(None, inputs)
    with wpk.load(path, device="cpu") as engine:
        actual = engine.run(inputs)
    for output, right in zip(model.graph.output, expected, strict=True):
        np.testing.assert_allclose(actual[output.name], right, rtol=1e-6, atol=1e-6)
        assert actual[output.name].dtype == right.dtype


REFUSED = {
    "along the free dimension 'N'": "(float[N,4] x, int64[2,4] i) => (float[2,4] y) "
    "{ y = GatherElements(x, i) }",
    "GatherND along the free dimension": "(float[N,4] x, int64[2,1] i) => (float[2,4] y) "
    "{ y = GatherND(x, i) }",
    "ArgMax along the free dimension": "(float[N,4] x) => (int64[1,4] y) { y = ArgMax(x) }",
    "the number of elements of TopK must be constant": "(float[3,4] x, int64[1] k) => (float[3,2] v, int64[3,2] y) "
    "{ v, y = TopK(x, k) }",
    "an order that ONNX leaves open": "(float[3,4] x) => (float[3,2] v, int64[3,2] y) "
    "<int64[1] k = {2}> { v, y = TopK<sorted=0>(x, k) }",
    "CumSum along the free dimension": "(float[N,4] x) => (float[N,4] y) <int64 a = {0}> "
    "{ y = CumSum(x, a) }",
    "into a part of": "(float[3,4] x, int64[2,2] i, float[2,2] u) => (float[3,4] y) "
    "{ y = ScatterElements<axis=1>(x, i, u) }",
    "a free number of updates": "(float[3,4] x, int64[N,1] i, float[N,4] u) => (float[3,4] y) "
    "{ y = ScatterND(x, i, u) }",
}  # fmt: skip


CACHES = {
    "new rows of a cache": '(float[N,2,7,3] x, float[N,2,2,3] u, int64[N] w) => (float[N,2,7,3] y) '
    '{ y = TensorScatter(x, u, w) }',
    "rows of a ring": '(float[N,7,3] x, float[N,3,3] u, int64[N] w) => (float[N,7,3] y) '
    '{ y = TensorScatter<axis = 1, mode = "circular">(x, u, w) }',
    "the first rows": '(float[2,7,3] x, float[2,3,3] u) => (float[2,7,3] y) { y = TensorScatter(x, u) }',
}  # fmt: skip


@pytest.mark.parametrize("name", CACHES)
def test_a_cache_is_written_as_onnx_says(
    name: str, tmp_path: Path, execute: Callable[..., dict[str, Any]]
) -> None:
    head = '<ir_version: 11, opset_import: ["" : 24]>'
    model = onnx.parser.parse_model(f"{head} g {CACHES[name]}")
    onnx.save(model, tmp_path / "model.onnx")
    program = lower_model(tmp_path / "model.onnx", {}, Precision.FP32).program
    inputs = _inputs(model, 2)
    if "w" in inputs:
        inputs["w"] = np.array([5, 1] if "ring" in name or "new" in name else [0, 0])
    (right,) = onnx.reference.ReferenceEvaluator(model).run(None, inputs)
    np.testing.assert_array_equal(execute(program, inputs)["y"], right)
    path = tmp_path / "model.plan"
    wpk.optimize(tmp_path / "model.onnx", path, target="h200", search="static")
    with wpk.load(path, device="cpu") as engine:
        np.testing.assert_array_equal(engine.run(inputs)["y"], right)


@pytest.mark.parametrize("words", REFUSED)
def test_refuses_in_words(words: str, tmp_path: Path) -> None:
    onnx.save(onnx.parser.parse_model(f"{H} g {REFUSED[words]}"), tmp_path / "model.onnx")
    with pytest.raises(UnsupportedError, match=words):
        lower_model(tmp_path / "model.onnx", {}, Precision.FP32)
