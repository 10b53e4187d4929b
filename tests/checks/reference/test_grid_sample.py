"""The reference of GridSample agrees with ONNX Runtime, and in float64 with onnx's own where that is right."""

import itertools

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx.reference import ReferenceEvaluator

from wpk.checks.reference.operators import REFERENCE_OPS

MODES, PADDINGS = ("nearest", "linear", "cubic"), ("zeros", "border", "reflection")
FORMS = [*itertools.product(MODES, PADDINGS, (0, 1))]


def _case(mode: str, padding: str, aligned: int, lengths: list[int], opset: int = 20):
    sizes, out = ", ".join(map(str, lengths)), ", ".join("5" for _ in lengths)
    model = onnx.parser.parse_model(
        f"""<ir_version: 10, opset_import: ["" : {opset}]>
        g (float[3, 2, {sizes}] x, float[3, {out}, {len(lengths)}] grid) => (float[3, 2, {out}] y)
        {{ y = GridSample<mode = "{mode}", padding_mode = "{padding}",
            align_corners = {aligned}>(x, grid) }}"""
    )
    rng = np.random.default_rng(7)
    x = rng.standard_normal((3, 2, *lengths)).astype(np.float32)
    grid = 1.5 * rng.standard_normal((3, *(5 for _ in lengths), len(lengths)))
    return model, {"x": x, "grid": grid.astype(np.float32)}


def _agrees_with_onnxruntime(model: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> None:
    (expected,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, feeds)
    (ours,) = ReferenceEvaluator(model, new_ops=[*REFERENCE_OPS]).run(None, feeds)
    assert ours.dtype == expected.dtype
    # Places of about 10 elements are right to 2^-21, elements differ by about 4 between neighbours.
    np.testing.assert_allclose(ours, expected, rtol=0, atol=2**-16)


@pytest.mark.parametrize(("mode", "padding", "aligned"), FORMS)
def test_images(mode: str, padding: str, aligned: int) -> None:
    _agrees_with_onnxruntime(*_case(mode, padding, aligned, [7, 4]))


@pytest.mark.parametrize(("mode", "padding", "aligned"), [f for f in FORMS if f[0] != "cubic"])
def test_volumes(mode: str, padding: str, aligned: int) -> None:
    _agrees_with_onnxruntime(*_case(mode, padding, aligned, [3, 7, 4]))


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
def test_names_before_opset_20(mode: str) -> None:
    _agrees_with_onnxruntime(*_case(mode, "zeros", 0, [7, 4], opset=16))


@pytest.mark.parametrize("aligned", [0, 1])
@pytest.mark.parametrize("padding", ["zeros", "reflection"])
def test_cubic_volumes_as_in_onnx(padding: str, aligned: int) -> None:
    model, feeds = _case("cubic", padding, aligned, [3, 7, 4])
    (expected,) = ReferenceEvaluator(model).run(None, feeds)
    (ours,) = ReferenceEvaluator(model, new_ops=[*REFERENCE_OPS]).run(None, feeds)
    np.testing.assert_allclose(ours, expected, rtol=0, atol=2**-16)


def test_float64_is_kept() -> None:
    """Linear along an axis: the numbers 0, 1, 2, ... at a place are the place."""
    model, feeds = _case("linear", "border", 1, [7, 1])
    x = np.broadcast_to(np.arange(7.0)[:, None], (3, 2, 7, 1)).copy()
    grid = np.clip(feeds["grid"].astype(np.float64) / 3 + 1e-12, -1, 1)
    (ours,) = ReferenceEvaluator(model, new_ops=[*REFERENCE_OPS]).run(None, {"x": x, "grid": grid})
    places = np.broadcast_to(((grid[..., 1] + 1) * 3)[:, None], ours.shape)
    np.testing.assert_allclose(ours, places, rtol=1e-15, atol=1e-15)


@pytest.mark.parametrize("aligned", [0, 1])
@pytest.mark.parametrize("size", ["2, 3, 5, 6", "2, 3, 4, 5, 6"])
def test_an_affine_grid_is_onnx_s_and_in_float64(size: str, aligned: int) -> None:
    axes = len(size.split(",")) - 2
    model = onnx.parser.parse_model(
        f"""<ir_version: 9, opset_import: ["" : 20]>
        g (double[2, {axes}, {axes + 1}] theta) => (double[n] grid) <int64[{axes + 2}] size = {{{size}}}> {{
        grid = AffineGrid<align_corners = {aligned}>(theta, size) }}"""
    )
    theta = np.random.default_rng(0).standard_normal((2, axes, axes + 1))
    ours = ReferenceEvaluator(model, new_ops=[*REFERENCE_OPS]).run(None, {"theta": theta})[0]
    onnx_s = ReferenceEvaluator(model).run(None, {"theta": theta})[0]
    assert ours.dtype == np.float64
    np.testing.assert_allclose(ours, onnx_s, rtol=0, atol=1e-6)
    # A transform that moves nothing gives the coordinates themselves.
    still = np.broadcast_to(np.eye(axes, axes + 1), theta.shape)
    found = ReferenceEvaluator(model, new_ops=[*REFERENCE_OPS]).run(None, {"theta": still})[0]
    step = 2 / 5 if aligned else 2 / 6
    np.testing.assert_allclose(np.diff(found[..., 0], axis=axes), step, rtol=1e-15)
