"""Constant indices that form a grid become a Gather for each axis."""

import numpy as np
import pytest

from wpk.graph_passes.movement.gathers.grid_gather import GridGather

H = '<ir_version: 8, opset_import: ["" : 18]>'


def _grid(load, shape, index, out):
    ports = f"(float[{shape}] x, int64[{', '.join(map(str, index.shape))}] i) => (float[{out}] y)"
    graph = load(f"{H} g {ports} {{ r = Relu(x)  y = GatherND(r, i) }}", "i=0")
    graph.nodes[1].inputs[1].values = index
    return graph


def _mesh(rows, columns):
    rows, columns = np.meshgrid(rows, columns, indexing="ij")
    return np.stack([rows, columns], -1)[:, None, None]


@pytest.mark.parametrize(("rows", "columns", "ops"), [
    ([0, 1, 2], [0, 1, 2, 3], ["Relu", "Reshape"]),
    ([0, 1, 2], [1, 2], ["Relu", "Gather", "Reshape"]),
    ([2, 0, -1], [3, 1], ["Relu", "Gather", "Gather", "Reshape"]),
    ([1], [0, 1, 2, 3], ["Relu", "Gather", "Reshape"]),
])  # fmt: skip
def test_a_grid_is_read_axis_by_axis(load, run_model, export, rows, columns, ops):
    index = _mesh(rows, columns)
    out = f"{len(rows)}, 1, 1, {len(columns)}, 5"
    graph, plain = (_grid(load, "3, 4, 5", index, out) for _ in range(2))
    assert GridGather()(graph).rewritten == 1
    assert [node.op for node in graph.nodes] == ops
    x = {"x": np.random.default_rng(0).standard_normal((3, 4, 5)).astype(np.float32)}
    np.testing.assert_array_equal(run_model(export(graph), x)[0], run_model(export(plain), x)[0])
    assert GridGather()(graph).rewritten == 0


@pytest.mark.parametrize("index", [
    np.array([[0, 0], [1, 1], [2, 2]]),  # a diagonal
    np.stack(np.meshgrid([0, 1], [0, 1, 2], indexing="xy"), -1),  # turned
    np.broadcast_to(np.array([[0], [2]])[:, None], (2, 3, 1)).copy(),  # repeated
])  # fmt: skip
def test_what_is_no_grid_stays(load, index):
    out = ", ".join(map(str, (*index.shape[:-1], *(3, 4, 5)[index.shape[-1] :])))
    graph = _grid(load, "3, 4, 5", index, out)
    assert GridGather()(graph).rewritten == 0
