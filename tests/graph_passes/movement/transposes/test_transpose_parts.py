"""Transposes of more axes than a kernel has become two."""

import itertools

import numpy as np
import pytest

from wpk.graph_passes.movement.chains.views import MOST_AXES
from wpk.graph_passes.movement.transposes.transpose_parts import TransposeParts

H = '<ir_version: 8, opset_import: ["" : 18]>'


def _graph(load, shape, perm):
    turned = ", ".join(str(shape[axis]) for axis in perm)
    sizes = ", ".join(map(str, shape))
    body = f"{{ r = Relu(x)  y = Transpose<perm = {list(perm)}>(r) }}"
    return load(f"{H} g (float[{sizes}] x) => (float[{turned}] y) {body}")


def _axes(perm, shape):
    """Axes of a copy, counted by the strides of what is read and written."""
    read = np.empty(shape, np.int8).transpose(perm)
    written = np.empty(read.shape, np.int8)
    axes = [a for a in range(read.ndim) if read.shape[a] > 1]
    pairs = itertools.pairwise(axes)
    joined = sum(
        all(t.strides[a] == t.strides[b] * t.shape[b] for t in (read, written)) for a, b in pairs
    )
    return len(axes) - joined


@pytest.mark.parametrize(("shape", "perm", "steps"), [
    ((2, 4, 4, 4, 4, 16), (0, 2, 4, 1, 3, 5), 2),  # a window's grid
    ((2, 2, 2, 2, 2, 4, 4, 24), (0, 1, 3, 5, 2, 4, 6, 7), 2),  # windows of a video
    ((1, 2, 3, 1, 2, 3, 4, 2), (7, 5, 1, 0, 4, 2, 6, 3), 2),
    ((2, 3, 4, 5, 2), (4, 3, 2, 1, 0), 1),
    ((2, 1, 3, 1, 2, 2, 2, 2), (0, 1, 2, 3, 5, 4, 7, 6), 1),  # in which two stay together
])  # fmt: skip
def test_a_transpose_becomes_steps_that_kernels_have(load, run_model, export, shape, perm, steps):
    graph, plain = (_graph(load, shape, perm) for _ in range(2))
    while TransposeParts()(graph).rewritten:
        pass
    made = [node for node in graph.nodes if node.op == "Transpose"]
    assert len(made) == steps
    for node in made:
        assert _axes(node.attrs["perm"], node.inputs[0].shape) <= MOST_AXES
    x = {"x": np.random.default_rng(0).standard_normal(shape).astype(np.float32)}
    np.testing.assert_array_equal(run_model(export(graph), x)[0], run_model(export(plain), x)[0])


def test_a_free_dimension_stays_in_front(load):
    perm = (0, 2, 4, 1, 3, 5)
    graph = _graph(load, ("n", 2, 3, 2, 3, 2), perm)
    assert TransposeParts()(graph).rewritten == 1
    made = [node for node in graph.nodes if node.op == "Transpose"]
    assert [node.attrs["perm"][0] for node in made] == [0, 0]
    assert made[0].outputs[0].shape[0] == "n"


def test_a_free_dimension_that_leaves_the_front_is_left_alone(load):
    result = TransposeParts()(_graph(load, ("n", 2, 3, 2, 3, 2), (5, 4, 3, 2, 1, 0)))
    (refused,) = result.refusals
    assert "takes the free dimension of 'r' away" in refused.reason
