"""Products of signed bytes as products of unsigned ones: the same numbers, on every CPU."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from wpk.graph_passes import open_session
from wpk.graph_passes.core import runtime, unsigned_bytes
from wpk.graph_passes.core.unsigned_bytes import two_terms, with_unsigned_bytes

TYPES = {np.uint8: TensorProto.UINT8, np.int8: TensorProto.INT8}
PAIRS = [(np.uint8, np.int8), (np.int8, np.uint8), (np.int8, np.int8)]


def drawn(kind: type, shape: tuple[int, ...], seed: int) -> np.ndarray:
    limits = np.iinfo(kind)
    random = np.random.default_rng(seed)
    return random.integers(limits.min, limits.max + 1, shape).astype(kind)


def product(
    x: type, w: np.ndarray, zeros: tuple[int, int] | None, constant: bool
) -> onnx.ModelProto:
    """MatMulInteger of x and w, a weight or an input; zero points are constants."""
    given = [helper.make_tensor_value_info("x", TYPES[x], (3, w.shape[0]))]
    weights = []
    if constant:
        weights.append(numpy_helper.from_array(w, "w"))
    else:
        given.append(helper.make_tensor_value_info("w", TYPES[w.dtype.type], w.shape))
    names = ["x", "w"]
    if zeros is not None:
        names += ["x_zero", "w_zero"]
        weights.append(numpy_helper.from_array(np.array(zeros[0], x), "x_zero"))
        weights.append(numpy_helper.from_array(np.array(zeros[1], w.dtype), "w_zero"))
    y = helper.make_tensor_value_info("y", TensorProto.INT32, (3, w.shape[1]))
    graph = helper.make_graph(
        [helper.make_node("MatMulInteger", names, ["y"])], "g", given, [y], weights
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.fixture(name="cutting")
def _cutting(monkeypatch: pytest.MonkeyPatch) -> None:
    """A CPU on which ONNX Runtime cuts sums."""
    monkeypatch.setattr(runtime, "_cuts_sums", lambda: True)


def test_no_sum_is_cut_on_this_machine() -> None:
    model, inputs, total = two_terms()
    assert open_session(model).run(None, inputs)[0].item() == total


@pytest.mark.usefixtures("cutting")
@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("zeros", [None, (3, 7)])
@pytest.mark.parametrize(("of_x", "of_w"), PAIRS)
def test_sums_are_those_of_integers(
    of_x: type, of_w: type, zeros: tuple[int, int] | None, constant: bool
) -> None:
    x, w = drawn(of_x, (3, 40), 0), drawn(of_w, (40, 24), 1)
    model = product(of_x, w, zeros, constant)
    changed = with_unsigned_bytes(model)
    assert changed is not None
    onnx.checker.check_model(changed, full_check=True)
    given = {"x": x} if constant else {"x": x, "w": w}
    (found,) = open_session(model.SerializeToString()).run(None, given)
    zero_x, zero_w = zeros or (0, 0)
    np.testing.assert_array_equal(found, (x.astype(int) - zero_x) @ (w.astype(int) - zero_w))


@pytest.mark.usefixtures("cutting")
def test_borders_of_convolutions_are_zero_points() -> None:
    x, w = drawn(np.int8, (1, 2, 5, 4), 0), drawn(np.uint8, (3, 2, 3, 3), 1)
    node = helper.make_node("ConvInteger", ["x", "w", "zero"], ["y"], pads=[1, 1, 1, 1])
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.INT8, x.shape)],
        [helper.make_tensor_value_info("y", TensorProto.INT32, (1, 3, 5, 4))],
        [numpy_helper.from_array(w, "w"), numpy_helper.from_array(np.array(9, np.int8), "zero")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (found,) = open_session(model.SerializeToString()).run(None, {"x": x})
    padded = np.pad(x.astype(int) - 9, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    np.testing.assert_array_equal(found, np.einsum("bchwij,kcij->bkhw", windows, w.astype(int)))


@pytest.mark.usefixtures("cutting")
def test_a_zero_point_that_is_not_moved_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(unsigned_bytes.PRODUCTS, "MatMulInteger", ((1, 1),))
    x, w = drawn(np.uint8, (3, 40), 0), drawn(np.int8, (40, 24), 1)
    (found,) = open_session(product(np.uint8, w, None, True).SerializeToString()).run(
        None, {"x": x}
    )
    assert (found != x.astype(int) @ w.astype(int)).any()


@pytest.mark.usefixtures("cutting")
def test_weights_in_files_are_found_beside_the_model(tmp_path: Path) -> None:
    x, w = drawn(np.uint8, (3, 40), 0), drawn(np.int8, (40, 24), 1)
    path = tmp_path / "model.onnx"
    onnx.save(
        product(np.uint8, w, (3, 7), True),
        path,
        save_as_external_data=True,
        location="weights.bin",
        size_threshold=64,
    )
    assert (tmp_path / "weights.bin").stat().st_size >= w.nbytes
    (found,) = open_session(str(path)).run(None, {"x": x})
    np.testing.assert_array_equal(found, (x.astype(int) - 3) @ (w.astype(int) - 7))


def test_other_models_stay_as_they_are() -> None:
    assert with_unsigned_bytes(product(np.uint8, drawn(np.uint8, (4, 4), 0), None, True)) is None
    text = (
        '<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[2] y) { y = Relu (x) }'
    )
    assert with_unsigned_bytes(onnx.parser.parse_model(text)) is None
