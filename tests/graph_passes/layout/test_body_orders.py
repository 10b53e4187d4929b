"""What an operator would have of the order of its inputs, seen through the transposes of its body."""

import onnx_graphsurgeon as gs
import pytest

from wpk.graph_passes import called
from wpk.graph_passes.fusion.fuse_operators import FuseOperators
from wpk.graph_passes.layout.body_orders import Weight, passes_last_on, weight_of
from wpk.graph_passes.layout.channels_last import ChannelsLast

H = '<ir_version: 8, opset_import: ["" : 20]>'


def _last_function(graph: gs.Graph) -> gs.Function:
    FuseOperators()(graph)
    return called(graph, graph.nodes[-1])


@pytest.mark.parametrize(
    ("given", "body", "last", "as_is", "as_result"),
    [
        ("float[2, 4, 6, 5] x", "y = Conv(x, w)", Weight.PIXELS, Weight.NONE, True),
        (
            "float[2, 6, 5, 4] x",
            "t = Transpose<perm = [0, 3, 1, 2]>(x)  y = Conv(t, w)",
            Weight.NONE,
            Weight.PIXELS,
            False,
        ),
        ("float[2, 4, 6, 5] x", "y = Exp(x)", Weight.NONE, Weight.NONE, True),
        (
            "float[2, 4, 6, 5] x",
            "t = Transpose<perm = [0, 2, 3, 1]>(x)  y = LayerNormalization(t, s)",
            Weight.ROWS,
            Weight.NONE,
            False,
        ),
        ("float[2, 6, 5, 4] x", "y = LayerNormalization(x, s)", Weight.NONE, Weight.ROWS, True),
        ("float[2, 6, 5, 4] x", "y = MatMul(x, w)", Weight.NONE, Weight.PRODUCT, True),
        (
            "float[2, 8, 6, 5] x",
            "r = Reshape(x, halves)  y = ReduceSum<keepdims = 0>(r, one)",
            Weight.NONE,
            Weight.NONE,
            True,
        ),
        (
            "float[2, 8, 6, 5] x",
            "r = Reshape(x, pairs)  y = ReduceSum<keepdims = 0>(r, two)",
            Weight.NONE,
            Weight.NONE,
            True,
        ),
        (
            "float[2, 8, 6, 5] x",
            "r = Reshape(x, halves)  y = ReduceSum<keepdims = 0>(r, four)",
            Weight.NONE,
            Weight.NONE,
            False,
        ),
        ("float[2, 8, 6, 5] x", "y = ReduceSum(x, two)", Weight.NONE, Weight.NONE, True),
    ],
)  # fmt: skip
def test_an_order_is_asked_for_through_transposes(load, given, body, last, as_is, as_result):
    text = f"""{H} g ({given}, float[4, 4, 1, 1] w, float[4] s) => (float[a, b, c, d] y)
        <int64[5] halves = {{2, 2, 4, 6, 5}}, int64[5] pairs = {{2, 4, 2, 6, 5}},
        int64[1] one = {{1}}, int64[1] two = {{2}}, int64[1] four = {{4}}>
        {{ {body} }}"""
    function = _last_function(load(text, constants="w s"))
    assert weight_of(function, 0, [0, 2, 3, 1]) == last
    assert weight_of(function, 0, [0, 1, 2, 3]) == as_is
    assert passes_last_on(function, 0) == as_result


def test_a_sequence_lies_as_it_matters_most_to_its_readers(load):
    graph = load(
        f"""{H} g (float[2, 8, 6] x, float[8, 8, 1] w, float[8] s, float[2, 6, 5] m)
        => (float[2, 6, 8] y, float[2, 8, 5] z) {{
        a = Conv(x, w)  z = MatMul(a, m)
        t = Transpose<perm = [0, 2, 1]>(a)  y = LayerNormalization(t, s) }}""",
        constants="w s",
    )
    FuseOperators()(graph)
    assert ChannelsLast()(graph).rewritten == 1
    (convolution,) = (node for node in graph.nodes if node.op.startswith("conv"))
    assert list(convolution.outputs[0].shape) == [2, 6, 8]
    assert ChannelsLast()(graph).rewritten == 0, "the product turns it back"


def test_rows_between_convolutions_lie_in_one_piece(load):
    graph = load(
        f"""{H} g (float[2, 3, 8, 8] x, float[8, 3, 1, 1] v, float[8, 1, 3, 3] w, float[8] s, float[8, 8] m)
        => (float[2, 8, 8, 8] y) {{
        a = Conv(x, v)  b = Conv<group = 8, pads = [1, 1, 1, 1]>(a, w)
        t = Transpose<perm = [0, 2, 3, 1]>(b)  n = LayerNormalization(t, s)  p = MatMul(n, m)  q = Relu(p)
        u = Transpose<perm = [0, 3, 1, 2]>(q)  r = Add(u, a)
        y = Conv<group = 8, pads = [1, 1, 1, 1]>(r, w) }}""",
        constants="v w s m",
    )
    FuseOperators()(graph)
    ChannelsLast()(graph)
    shapes = [list(node.outputs[0].shape) for node in graph.nodes]
    assert all(shape[-1] == 8 and shape[1:3] == [8, 8] for shape in shapes)
    normalised = called(graph, next(n for n in graph.nodes if n.op.startswith("layernorm")))
    assert [node.attrs["perm"] for node in normalised.nodes if node.op == "Transpose"] == [
        [0, 3, 1, 2],
        [0, 2, 3, 1],
    ]


def test_a_product_that_reads_rows_as_they_lie_does_not_ask_for_others(load):
    graph = load(
        f"""{H} g (float[2, 6, 8] x, float[8, 8] w, float[6, 6, 1] f) => (float[2, 6, 8] y) {{
        n = Relu(x)  p = MatMul(n, w)  y = Conv(p, f) }}""",
        constants="w f",
    )
    FuseOperators()(graph)
    assert ChannelsLast()(graph).rewritten == 1, "the product's result alone"
    assert [list(node.outputs[0].shape) for node in graph.nodes][:2] == [[2, 6, 8], [2, 8, 6]]
