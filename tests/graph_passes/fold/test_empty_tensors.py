"""Tensors of no elements are constants, and parts that are empty are dropped."""

import pytest

from wpk.graph_passes.fold.empty_tensors import EmptyTensors

H = '<ir_version: 10, opset_import: ["" : 20]>'
NOTHING = "<int64[1] zero = {0}, int64[1] three = {3}, int64[1] last = {1}>"


def test_an_empty_slice_leaves_a_concatenation(prove):
    proof = prove(
        f"""{H} g (float[2, 3] x, float[2, 4] z) => (float[2, 7] y) {NOTHING} {{
        e = Slice(x, three, three, last)  y = Concat<axis = 1>(x, e, z) }}""",
        EmptyTensors(),
        rewritten=2,
    )
    assert proof.ops == ["Concat"]
    assert len(proof.node("Concat").inputs) == 2


def test_what_is_left_of_a_concatenation_is_its_only_part(prove):
    proof = prove(
        f"""{H} g (float[2, 3] x) => (float[2, 3] y) {NOTHING} {{
        e = Slice(x, three, three, last)  n = Neg(e)  y = Concat<axis = 1>(n, x) }}""",
        EmptyTensors(),
        rewritten=3,
    )
    assert proof.ops == ["Identity"]


@pytest.mark.parametrize(("sizes", "left"), [("2, 0, 4", ["Split"]), ("0, 6, 0", ["Identity"])])
def test_a_split_loses_its_empty_parts(prove, sizes, left):
    proof = prove(
        f"""{H} g (float[2, 6] x) => (float[2, 6] y) <int64[3] sizes = {{{sizes}}}> {{
        a, b, c = Split<axis = 1>(x, sizes)  y = Concat<axis = 1>(c, b, a) }}""",
        EmptyTensors(),
        rewritten=2,
        settle=True,
    )
    assert proof.ops[:1] == left


def test_what_leaves_the_graph_is_a_copy_of_nothing(prove):
    proof = prove(
        f"""{H} g (float[2, 3] x) => (float[2, 0] y, float[2, 0] z) {NOTHING} {{
        y = Slice(x, three, three, last)  z = Neg(y) }}""",
        EmptyTensors(),
        rewritten=2,
        settle=True,
    )
    assert proof.ops == ["Identity", "Identity"]


def test_an_empty_input_is_a_constant_to_what_reads_it(load):
    graph = load(f"""{H} g (float[2, 0] x, float[2, 3] z) => (float[2, 1] y, float[2, 3] w) {NOTHING} {{
        y = ReduceProd(x, last)  w = Concat<axis = 1>(x, z) }}""")
    assert EmptyTensors()(graph).rewritten == 2
    (product,) = [node for node in graph.nodes if node.op == "ReduceProd"]
    assert product.inputs[0].values.shape == (2, 0)
    assert [each.name for each in graph.inputs] == ["x", "z"]


def test_what_a_window_larger_than_its_input_leaves_is_not_believed(load):
    graph = load(f"""{H} g (float[4, 2, 1, 1] x) => (float[4, 2, a, b] y) {{
        p = AveragePool<kernel_shape = [1, 3], strides = [2, 2], ceil_mode = 1>(x)
        n = Neg(p)  y = Relu(n) }}""")
    assert EmptyTensors()(graph).rewritten == 0


def test_a_shape_that_a_run_decides_is_not_believed(load):
    graph = load(f"""{H} g (float[0, 3] x, int64[2] shape) => (float[3, 0] y) {{
        y = Reshape<allowzero = 1>(x, shape) }}""")
    EmptyTensors()(graph)
    assert [node.op for node in graph.nodes] == ["Reshape"]


def test_a_sum_over_nothing_is_no_empty_tensor(load):
    graph = load(f"""{H} g (float[2, 3] x) => (float[2, 1] y) {NOTHING} {{
        e = Slice(x, three, three, last)  y = ReduceSum(e, last) }}""")
    EmptyTensors()(graph)
    assert [node.op for node in graph.nodes] == ["ReduceSum"]
