"""What does not depend on the inputs is computed once; what must not be, is not."""

import pytest

from wpk.graph_passes.fold.constant_folding import ConstantFolding

H = '<ir_version: 8, opset_import: ["" : 17]>'


def test_folds_a_chain_in_one_run(prove):
    proof = prove(
        f"""{H} g (float[2, 3] x, float[3] w) => (float[2, 3] y) {{
        a = Neg(w)  b = Exp(a)  c = Constant <value = float[3] {{1, 2, 3}}> ()
        d = Mul(b, c)  y = Add(x, d) }}""",
        ConstantFolding(),
        constants="w",
        rewritten=4,
    )
    assert proof.ops == ["Add"]


@pytest.mark.parametrize(
    "constant", ["value_float = 2.5", "value_floats = [1.0, 2.0, 3.0]", "value = float {4.5}"]
)
def test_folds_every_form_of_constant(prove, constant):
    proof = prove(
        f"""{H} g (float[2, 3] x) => (float[2, 3] y) {{
        c = Constant <{constant}> ()  y = Mul(x, c) }}""",
        ConstantFolding(),
    )
    assert proof.ops == ["Mul"]


def test_folds_range_where_expand_and_slices(prove):
    prove(
        f"""{H} g (float[4] x) => (float[4] y)
        <int64 zero = {{0}}, int64 four = {{4}}, int64 one = {{1}}, int64[1] shape = {{4}},
         int64 two = {{2}}, float low = {{-1}}, float high = {{1}}> {{
        r = Range(zero, four, one)
        c = Less(r, two)
        w = Where(c, low, high)
        e = Expand(w, shape)
        y = Mul(x, e) }}""",
        ConstantFolding(),
        rewritten=4,
    )


def test_folds_all_outputs_of_a_split(prove):
    proof = prove(
        f"""{H} g (float[2] x, float[4] w) => (float[2] y) {{
        a, b = Split(w)  c = Add(x, a)  y = Mul(c, b) }}""",
        ConstantFolding(),
        constants="w",
    )
    assert proof.ops == ["Add", "Mul"]


@pytest.mark.parametrize(
    ("body", "output", "reason"),
    [
        ("y = RandomNormal <shape = [2]> ()", "float[2] y", "RandomNormal is random"),
        ("y = Neg(w)", "float[3] y", "'y' is a graph output"),
        (
            "a = Expand(w, s)  b = Relu(a)  y = ReduceMax <keepdims = 0> (b)",
            "float y",
            "its result has 67200000 bytes, its inputs 28, the cap is 67108864",
        ),
    ],
)
def test_refuses(load, body, output, reason):
    graph = load(
        f"""{H} g (float[2] x, float[3] w) => ({output})
        <int64[2] s = {{5600000, 3}}> {{ {body} }}""",
        "w",
    )
    result = ConstantFolding()(graph)
    assert result.rewritten == 0
    assert reason in [refusal.reason for refusal in result.refusals]


def test_refuses_what_the_evaluator_cannot_run(load):
    graph = load(f"""{H} g (float[2] x, int64[1] s) => (float[2] y)
        <float[2] w = {{1, 2}}, int64[2] bad = {{3, 5}}> {{ a = Reshape(w, bad)  y = Add(x, x) }}""")
    graph.nodes[1].inputs = [graph.inputs[0], graph.nodes[0].outputs[0]]
    result = ConstantFolding()(graph)
    assert result.rewritten == 0
    reason = result.refusals[0].reason
    assert reason.startswith("ONNX Runtime cannot run Reshape: ")
    assert "; onnx's evaluator neither: " in reason


def test_an_old_softmax_is_folded_as_what_it_was(prove):
    proof = prove(
        """<ir_version: 7, opset_import: ["" : 11]>
        g (float[2, 3, 4] x, float[2, 3, 4] w) => (float[2, 3, 4] y) {
        a = Softmax <axis = 1> (w)  y = Add(x, a) }""",
        ConstantFolding(),
        constants="w",
    )
    assert proof.ops == ["Add"]


def test_folds_what_onnx_itself_cannot_compute(prove):
    """Exports of BERT gather the types of their tokens; onnx's evaluator has no wide GatherElements."""
    proof = prove(
        f"""{H} g (float[1, 8] x, float[1, 512] w) => (float[1, 8] y)
        <int64[1, 8] i = {{0, 1, 2, 3, 4, 5, 6, 500}}> {{
        a = GatherElements <axis = 1> (w, i)  y = Add(x, a) }}""",
        ConstantFolding(),
        constants="w",
    )
    assert proof.ops == ["Add"]
