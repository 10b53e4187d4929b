"""GridSample becomes places, elements that are read there, and weighted sums."""

import numpy as np
import pytest

from wpk.graph_passes.clean.resampling.grid_sample_parts import GridSampleParts

PADDINGS = ("zeros", "border", "reflection")


def sample(attributes: str, *, opset: int = 20, x: str = "2, 3, 7, 5", out: str = "4, 9") -> str:
    batch, channels, *lengths = x.split(", ")
    grid = f"{batch}, {out}, {len(lengths)}"
    return f"""<ir_version: 10, opset_import: ["" : {opset}]>
        g (float[{x}] x, float[{grid}] grid) => (float[{batch}, {channels}, {out}] y)
        {{ y = GridSample<{attributes}>(x, grid) }}"""


@pytest.mark.parametrize("aligned", [0, 1])
@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_an_image_has_the_same_numbers(prove, mode, padding, aligned):
    text = sample(f'mode = "{mode}", padding_mode = "{padding}", align_corners = {aligned}')
    proof = prove(text, GridSampleParts())
    assert "GatherElements" in proof.ops
    assert "GridSample" not in proof.ops
    assert ("ReduceSum" in proof.ops) == (mode != "nearest")


@pytest.mark.parametrize("aligned", [0, 1])
@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_a_volume_has_the_same_numbers(prove, mode, padding, aligned):
    attributes = f'mode = "{mode}", padding_mode = "{padding}", align_corners = {aligned}'
    text = sample(attributes, x="2, 3, 4, 7, 5", out="3, 2, 5")
    assert "GridSample" not in prove(text, GridSampleParts()).ops


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
def test_names_before_opset_20(prove, mode):
    text = sample(f'mode = "{mode}"', opset=16, x="3, 1, 5, 1", out="1, 7")
    assert "GridSample" not in prove(text, GridSampleParts()).ops


def test_defaults_are_linear_and_zeros(prove):
    assert "Where" in prove(sample("align_corners = 0", opset=16), GridSampleParts()).ops


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_a_free_batch(prove, mode):
    text = sample(f'mode = "{mode}"', x="N, 2, 7, 5")
    proof = prove(text, GridSampleParts(), batches=(1, 3))
    assert "GridSample" not in proof.ops


def test_infinity_outside_of_what_is_read_stays_outside(load, export, run_model):
    """The border's element stands in for what lies outside, and is not multiplied by 0."""
    graph = load(sample('mode = "linear", align_corners = 1', x="1, 1, 1, 3", out="1, 2"))
    GridSampleParts()(graph)
    x = np.array([[[[np.inf, 1.0, 2.0]]]], np.float32)
    grid = np.array([[[[-2.5, 0.0], [0.5, 0.0]]]], np.float32)
    (y,) = run_model(export(graph), {"x": x, "grid": grid})
    np.testing.assert_array_equal(y, [[[[0.0, 1.5]]]])


def test_sizes_that_are_free_are_refused(refusals):
    text = sample("align_corners = 0", x="2, 3, H, 5")
    (reason,) = refusals(text, GridSampleParts())
    assert "all but the batch must be known" in reason


def test_batches_that_may_differ_are_refused(refusals):
    text = sample("align_corners = 0", x="N, 3, 7, 5").replace("float[N, 4", "float[M, 4")
    assert refusals(text, GridSampleParts()) == ["the batches of 'x' and 'grid' are N and M"]


def test_reflection_in_one_corner_is_refused(refusals):
    text = sample('padding_mode = "reflection", align_corners = 1', x="2, 3, 1, 5")
    assert refusals(text, GridSampleParts()) == [
        "an axis of one element has no two corners to reflect between"
    ]
