"""BatchNormalization goes into its neighbour, or becomes a Mul and an Add."""

import pytest

from wpk.graph_passes.fold.batch_norm import (
    BatchNormToAffine,
    FoldBatchNormAfter,
    FoldBatchNormBefore,
)

H = '<ir_version: 8, opset_import: ["" : 17]>'
STATISTICS = "float[4] s, float[4] t, float[4] m, float[4] v"
BN = "BatchNormalization <epsilon = 0.01>"


@pytest.mark.parametrize(
    ("inputs", "linear", "output"),
    [
        ("float[n, 3, 6, 6] x, float[4, 3, 3, 3] w", "Conv(x, w)", "float[n, 4, 4, 4] y"),
        (
            "float[n, 3, 6, 6] x, float[4, 3, 3, 3] w, float[4] b",
            "Conv <pads = [1, 1, 1, 1]> (x, w, b)",
            "float[n, 4, 6, 6] y",
        ),
        (
            "float[n, 4, 6, 6] x, float[4, 2, 3, 3] w, float[4] b",
            "Conv <group = 2> (x, w, b)",
            "float[n, 4, 4, 4] y",
        ),
        ("float[n, 3, 8] x, float[4, 3, 3] w", "Conv(x, w)", "float[n, 4, 6] y"),
        (
            "float[n, 3, 4, 4] x, float[3, 4, 3, 3] w, float[4] b",
            "ConvTranspose(x, w, b)",
            "float[n, 4, 6, 6] y",
        ),
        (
            "float[n, 6, 4, 4] x, float[6, 2, 3, 3] w",
            "ConvTranspose <group = 2> (x, w)",
            "float[n, 4, 6, 6] y",
        ),
        (
            "float[n, 5] x, float[5, 4] w, float[4] b",
            "Gemm <alpha = 0.5> (x, w, b)",
            "float[n, 4] y",
        ),
        ("float[n, 5] x, float[4, 5] w", "Gemm <transB = 1> (x, w)", "float[n, 4] y"),
        ("float[n, 5] x, float[5, 4] w, float[1] b", "Gemm(x, w, b)", "float[n, 4] y"),
    ],
)
def test_folds_behind_a_linear_operator(prove, inputs, linear, output):
    text = (
        f"{H} g ({inputs}, {STATISTICS}) => ({output}) {{ a = {linear}  y = {BN} (a, s, t, m, v) }}"
    )
    proof = prove(text, FoldBatchNormAfter(), constants="w s t m v" + " b" * (" b" in inputs))
    assert proof.ops == [linear.split("(")[0].split()[0]]


@pytest.mark.parametrize(
    ("inputs", "linear", "output"),
    [
        ("float[n, 4, 6, 6] x, float[3, 4, 3, 3] w", "Conv(a, w)", "float[n, 3, 4, 4] y"),
        (
            "float[n, 4, 6, 6] x, float[6, 2, 3, 3] w, float[6] b",
            "Conv <group = 2> (a, w, b)",
            "float[n, 6, 4, 4] y",
        ),
        ("float[n, 4] x, float[4, 3] w", "Gemm <alpha = 0.5> (a, w)", "float[n, 3] y"),
        (
            "float[n, 4] x, float[3, 4] w, float[3] b",
            "Gemm <transB = 1> (a, w, b)",
            "float[n, 3] y",
        ),
    ],
)
def test_folds_before_a_linear_operator(prove, inputs, linear, output):
    text = (
        f"{H} g ({inputs}, {STATISTICS}) => ({output}) {{ a = {BN} (x, s, t, m, v)  y = {linear} }}"
    )
    proof = prove(text, FoldBatchNormBefore(), constants="w s t m v" + " b" * (" b" in inputs))
    assert proof.ops == [linear.split("(")[0].split()[0]]


def test_pure_scales_pass_zero_padding(prove):
    prove(
        f"""{H} g (float[1, 2, 4, 4] x, float[3, 2, 3, 3] w) => (float[1, 3, 4, 4] y)
        <float[2] s = {{2, 3}}, float[2] t = {{0, 0}}, float[2] m = {{0, 0}}, float[2] v = {{1, 2}}> {{
        a = {BN} (x, s, t, m, v)  y = Conv <pads = [1, 1, 1, 1]> (a, w) }}""",
        FoldBatchNormBefore(),
        constants="w",
    )


@pytest.mark.parametrize("shape", ["[n, 4]", "[n, 4, 3]", "[n, 4, 3, 2]"])
def test_what_is_left_becomes_a_mul_and_an_add(prove, shape):
    text = (
        f"{H} g (float{shape} x, {STATISTICS}) => (float{shape} y) {{ y = {BN} (x, s, t, m, v) }}"
    )
    assert prove(text, BatchNormToAffine(), constants="s t m v").ops == ["Mul", "Add"]


def test_shared_weights_are_not_changed_for_the_other_reader(prove):
    proof = prove(
        f"""{H} g (float[1, 4, 3, 3] x, float[4, 4, 1, 1] w, {STATISTICS})
        => (float[1, 4, 3, 3] y) {{
        a = Conv(x, w)  b = {BN} (a, s, t, m, v)  y = Conv(b, w) }}""",
        FoldBatchNormAfter(),
        constants="w s t m v",
    )
    first, second = proof.graph.nodes
    assert first.inputs[1] is not second.inputs[1]
    assert second.inputs[1].name == "w"


@pytest.mark.parametrize(
    ("body", "constants", "reason"),
    [
        (
            "a = Conv(x, w)  y = BN(a, s, t, m, v)",
            "s t m v",
            "weight 'w' of 'Conv_0' is not a constant of floats",
        ),
        (
            "a = Conv(x, w, b)  y = BN(a, s, t, m, v)",
            "w s t m v",
            "bias 'b' of 'Conv_0' is not a constant of floats",
        ),
        (
            "a = Conv(x, w)  y = BN(a, s, t, m, v)",
            "w s t v",
            "statistic 'm' is not a constant of floats",
        ),
        ("a = Conv(x, w)  c = BN(a, s, t, m, v)  y = Add(a, c)", "w s t m v", "'a' has 2 readers"),
    ],
)
def test_after_refuses(refusals, body, constants, reason):
    text = f"""{H} g (float[1, 4, 3, 3] x, float[4, 4, 1, 1] w, float[4] b, {STATISTICS})
        => (float[1, 4, 3, 3] y) {{ {body.replace("BN", "BatchNormalization")} }}"""
    assert refusals(text, FoldBatchNormAfter(), constants) == [reason]


def test_after_refuses_a_graph_output_in_between(refusals):
    text = f"""{H} g (float[1, 4, 3, 3] x, float[4, 4, 1, 1] w, {STATISTICS})
        => (float[1, 4, 3, 3] y, float[1, 4, 3, 3] a) {{ a = Conv(x, w)  y = {BN} (a, s, t, m, v) }}"""
    assert refusals(text, FoldBatchNormAfter(), "w s t m v") == ["'a' is a graph output"]


def test_after_refuses_training_mode(refusals):
    text = f"""{H} g (float[1, 4, 3, 3] x, float[4, 4, 1, 1] w, {STATISTICS})
        => (float[1, 4, 3, 3] y) {{ a = Conv(x, w)
        y, p, q = BatchNormalization <training_mode = 1> (a, s, t, m, v) }}"""
    (reason,) = refusals(text, FoldBatchNormAfter(), "w s t m v")
    assert reason == "it is in training mode: its statistics come from the batch"


@pytest.mark.parametrize(
    ("linear", "constants", "reason"),
    [
        (
            "y = Conv <pads = [1, 1, 1, 1]> (a, w)",
            "w",
            "'Conv_1' pads with zeros, where the shift before it would be missing",
        ),
        (
            'y = Conv <auto_pad = "SAME_UPPER"> (a, w)',
            "w",
            "'Conv_1' pads with zeros, where the shift before it would be missing",
        ),
        (
            "y = ConvTranspose(a, w)",
            "w",
            "'ConvTranspose_1' sums fewer terms at its border, so a shift before it is no bias",
        ),
        ("z = Conv(a, w)  c = Relu(a)  y = Concat <axis = 0> (z, c)", "w", "'a' has 2 readers"),
        ("y = Conv(a, w)", "", "weight 'w' of 'Conv_1' is not a constant of floats"),
    ],
)
def test_before_refuses(refusals, linear, constants, reason):
    text = f"""{H} g (float[2, 4, 5, 5] x, float[4, 4, 3, 3] w, {STATISTICS})
        => (float[p, q, r, o] y) {{ a = {BN} (x, s, t, m, v)  {linear} }}"""
    if "Concat" in linear:
        text = text.replace("4, 4, 3, 3", "4, 4, 1, 1")
    assert refusals(text, FoldBatchNormBefore(), f"s t m v {constants}") == [reason]


def test_before_refuses_a_transposed_input(refusals):
    text = f"""{H} g (float[4, 4] x, float[4, 3] w, {STATISTICS}) => (float[4, 3] y) {{
        a = {BN} (x, s, t, m, v)  y = Gemm <transA = 1> (a, w) }}"""
    (reason,) = refusals(text, FoldBatchNormBefore(), "w s t m v")
    assert reason == "'Gemm_1' reads its input transposed: its channels are the rows"


def test_left_over_refuses_statistics_that_are_computed(refusals):
    text = f"{H} g (float[1, 4] x, {STATISTICS}) => (float[1, 4] y) {{ y = {BN} (x, s, t, m, v) }}"
    assert refusals(text, BatchNormToAffine(), "s t m") == [
        "statistic 'v' is not a constant of floats"
    ]


def test_refuses_a_variance_without_a_root(refusals):
    text = f"""{H} g (float[1, 1] x) => (float[1, 1] y)
        <float[1] s = {{1}}, float[1] t = {{1}}, float[1] m = {{0}}, float[1] v = {{-1}}> {{
        y = BatchNormalization (x, s, t, m, v) }}"""
    assert refusals(text, BatchNormToAffine()) == ["variance 'v' is negative or zero"]
