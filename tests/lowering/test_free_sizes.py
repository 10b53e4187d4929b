"""A free batch is checked beyond every constant that meets it."""

from pathlib import Path

import numpy as np
import pytest
from support.networks import small_models

from wpk.graph_passes import infer_shapes
from wpk.loading import load_graph
from wpk.lowering.free_sizes import constants_that_meet, sizes_to_check

INTEGERS = {
    "s": [0],
    "e": [40],
    "b": [-21],
    "l": [2**63 - 1],
    "a": [0],
    "c": [1],
    "r": [30, 6],
    "p": [0, 5, 19, 0],
}


@pytest.mark.parametrize(
    ("body", "most"),
    [
        ("y = Slice(x, s, e, a)", 40),
        ("y = Slice(x, s, e)", 40),
        ("y = Slice(x, s, e, c)", None),
        ("y = Slice(x, b, l, a)", 21),
        ("y = Slice(x, s, l, a)", None),
        ("y = Expand(x, r)", 30),
        ("y = Reshape(x, r)", 30),
        ("y = Tile(x, r)", 30),
        ("y = Pad(x, p)", 19),
        ("y = Gather<axis=0>(x, e)", 40),
        ("y = Gather<axis=1>(x, e)", None),
        ("y, z = Split<axis=0>(x, r)", 30),
        ("y = Concat<axis=0>(x, w)", 50),
        ("y = Concat<axis=1>(x, x)", None),
        ("y = Add(x, w)", 50),
        ("y = Gemm(x, t, v)", None),
        ("y = Gemm(x, t, u)", 30),
        ("y = MatMul(x, t)", None),
        ("q = Unsqueeze(x, c) k = MatMul(q, o) y = Squeeze(k, c)", 20),
        ("y = Relu(x)", None),
    ],
)
def test_what_meets_the_free_axis(tmp_path: Path, body: str, most: int | None) -> None:
    parameters = ", ".join(f"int64[{len(v)}] {name}" for name, v in INTEGERS.items())
    tensors = "float[N,6] x, float[50,6] w, float[6,40] t, float[40] v, float[30,1] u"
    text = f"agraph ({tensors}, float[20,6,2] o, {parameters}) => (float[m,n] y) {{ {body} }}"
    constants = {name: np.array(v, np.int64) for name, v in INTEGERS.items()}
    constants["w"] = np.ones((50, 6), np.float32)
    graph = load_graph(small_models.write(text, tmp_path, constants=constants))
    infer_shapes(graph)
    assert max(constants_that_meet(graph).values(), default=None) == most
    odd = 17 if most is None else max(17, most + 1 + most % 2)
    assert sizes_to_check(graph) == (1, 3, odd)


def test_a_constant_may_be_a_node(tmp_path: Path) -> None:
    text = """agraph (float[N,6] x) => (float[M,6] y) {
      s = Constant<value_ints=[0]>() e = Constant<value=int64[1] {70}>() y = Slice(x, s, e)
    }"""
    graph = load_graph(small_models.write(text, tmp_path))
    infer_shapes(graph)
    assert sizes_to_check(graph) == (1, 3, 71)
