"""What ONNX defines by other operators becomes those, unless wpk carries it itself."""

import pytest

from wpk.graph_passes.clean.definitions.function_bodies import FunctionBodies

H = '<ir_version: 10, opset_import: ["" : 23]>'
HEADS = "float[2, 6, 5, 8] q, float[2, 3, 4, 8] k, float[2, 3, 4, 8] v"
PAST = "float[2, 3, 7, 8] pk, float[2, 3, 7, 8] pv"

CASES = {
    "a type that is another's": f"""{H} g (float[3, 5] x, float16[1] like) => (float16[3, 5] y)
        {{ y = CastLike(x, like) }}""",
    "attributes": f"""{H} g (float[3, 6, 5] x, float[6] s, float[6] b) => (float[3, 6, 5] y)
        {{ y = GroupNormalization <num_groups = 3, epsilon = 0.5> (x, s, b) }}""",
    "an input twice": f"""{H} g (float[3, 6, 5] x, float[6] s) => (float[3, 6, 5] y)
        {{ y = GroupNormalization <num_groups = 2> (x, s, s) }}""",
    "inputs left out": f"""{H} g (float[2, 4, 3, 8] x, float[2, 3, 4] c, float[2, 3, 4] s) => (float[2, 4, 3, 8] y)
        {{ y = RotaryEmbedding (x, c, s) }}""",
    "more outputs": f"""{H} g (float[2, 3, 8] x, float[8] s) => (float[2, 3, 8] y, float[2, 3, 1] m)
        {{ y, m = LayerNormalization (x, s) }}""",
    "an output left out": f"""{H} g (float[2, 3, 8] x, float[8] s) => (float[2, 3, 8] y, float[2, 3, 1] d)
        {{ y, , d = LayerNormalization (x, s) }}""",
    "grouped heads with a cache": f"""{H} g ({HEADS}, {PAST})
        => (float[2, 6, 5, 8] y, float[2, 3, 11, 8] nk, float[2, 3, 11, 8] nv)
        {{ y, nk, nv = Attention (q, k, v, , pk, pv) }}""",
}


@pytest.mark.parametrize("case", CASES)
def test_a_body_gives_the_same_numbers(prove, case):
    proof = prove(CASES[case], FunctionBodies(), settle=True)
    assert not {"CastLike", "GroupNormalization", "RotaryEmbedding"} & set(proof.ops)
    assert not {"LayerNormalization", "Attention"} & set(proof.ops)


def test_two_nodes_of_one_operator_may_stand_beside_each_other(prove):
    proof = prove(
        f"""{H} g (float[3, 6, 5] x, float[6] s, float[6] b) => (float[3, 6, 5] y)
        {{ t = GroupNormalization <num_groups = 3> (x, s, b)
           y = GroupNormalization <num_groups = 2> (t, b, s) }}""",
        FunctionBodies(),
        settle=True,  # the type of what is between them is known once the first is expanded
    )
    assert "GroupNormalization" not in proof.ops


@pytest.mark.parametrize("op", ["Gelu", "Softplus", "HardSwish", "Softmax", "LeakyRelu"])
def test_what_is_carried_stays(load, op):
    graph = load(f"{H} g (float[3, 5] x) => (float[3, 5] y) {{ y = {op}(x) }}")
    assert FunctionBodies()(graph).rewritten == 0


def test_a_normalisation_whose_statistics_nobody_reads_stays(load):
    graph = load(f"""{H} g (float[2, 3, 8] x, float[8] s) => (float[2, 3, 8] y)
        {{ y, m, d = LayerNormalization (x, s) }}""")
    assert FunctionBodies()(graph).rewritten == 0


def test_a_body_of_operators_that_are_not_carried_stays(refusals):
    text = f"{H} g (float[3, 5] x) => (float[3, 5] y) {{ y = Bernoulli <seed = 1.0> (x) }}"
    assert refusals(text, FunctionBodies()) == [
        "its definition by ONNX has RandomUniformLike, which is not supported"
    ]


def test_a_body_with_a_loop_stays_where_its_steps_cannot_be_counted(refusals):
    text = """<ir_version: 13, opset_import: ["" : 27]>
        g (float[2, N, 24] q, float[2, N, 24] k, float[2, N, 24] v) => (float[2, N, 24] y, float[2, 3, 8, 8] s)
        { y, s = LinearAttention <q_num_heads = 3, kv_num_heads = 3, update_rule = "linear"> (q, k, v) }"""
    assert refusals(text, FunctionBodies()) == [
        "its definition by ONNX has Scan, and 'q' has a free dimension"
    ]


def test_scores_on_which_runtimes_differ_are_refused(refusals):
    text = f"""{H} g ({HEADS}) => (float[2, 6, 5, 8] y, float[2, 6, 5, 4] scores)
        {{ y, , , scores = Attention <is_causal = 1, qk_matmul_output_mode = 1> (q, k, v) }}"""
    assert refusals(text, FunctionBodies()) == [
        "its scores are given, and runtimes do not agree on those that are masked"
    ]
