"""Operators without a kernel become what they are defined by."""

import numpy as np
import pytest

from wpk.graph_passes.clean.definitions.defined_forms import DefinedForms

H = '<ir_version: 10, opset_import: ["" : 20]>'

CASES = {
    "hardmax": f"{H} g (float[N, 7] x) => (float[N, 7] y) {{ y = Hardmax(x) }}",
    "hardmax along an inner axis": f"""{H} g (float[3, 5, 4] x) => (float[3, 5, 4] y)
        {{ y = Hardmax<axis = 1>(x) }}""",
    "l1": f"{H} g (float[N, 7] x) => (float[N, 7] y) {{ y = LpNormalization<p = 1>(x) }}",
    "l2": f"{H} g (float[3, 5, 4] x) => (float[3, 5, 4] y) {{ y = LpNormalization<axis = 1>(x) }}",
    "lrn": f"""{H} g (float[N, 7, 5, 3] x) => (float[N, 7, 5, 3] y)
        {{ y = LRN<size = 3, alpha = 0.5, beta = 0.6, bias = 1.5>(x) }}""",
    "lrn of more than all channels": f"""{H} g (float[2, 5, 3, 3] x) => (float[2, 5, 3, 3] y)
        {{ y = LRN<size = 7, alpha = 0.5>(x) }}""",
    "pool": f"""{H} g (float[N, 3, 7, 6] x) => (float[N, 3, 4, 3] y)
        {{ y = LpPool<kernel_shape = [3, 2], strides = [2, 2], pads = [1, 0, 1, 0]>(x) }}""",
    "pool of magnitudes": f"""{H} g (float[2, 3, 8] x) => (float[2, 3, 6] y)
        {{ y = LpPool<kernel_shape = [3], p = 1>(x) }}""",
    "pool of cubes": f"""{H} g (float[2, 3, 8] x) => (float[2, 3, 6] y)
        {{ y = LpPool<kernel_shape = [3], p = 3>(x) }}""",
    "global": f"{H} g (float[N, 3, 7, 6] x) => (float[N, 3, 1, 1] y) {{ y = GlobalLpPool(x) }}",
    "global of magnitudes": f"""{H} g (float[2, 3, 7] x) => (float[2, 3, 1] y)
        {{ y = GlobalLpPool<p = 1>(x) }}""",
    "log of a sum": f"""{H} g (float[N, 7, 5] x) => (float[N, 7] y) <int64[1] axes = {{-1}}>
        {{ y = ReduceLogSumExp<keepdims = 0>(x, axes) }}""",
    "log of a sum of everything": f"{H} g (float[3, 5] x) => (float[1, 1] y) {{ y = ReduceLogSumExp(x) }}",
    "log of a sum of an older opset": """<ir_version: 8, opset_import: ["" : 13]> g (float[N, 7] x)
        => (float[N, 1] y) { y = ReduceLogSumExp<axes = [1]>(x) }""",
    "log of a sum of the oldest opset": """<ir_version: 6, opset_import: ["" : 11]> g (float[N, 7] x)
        => (float[N] y) { y = ReduceLogSumExp<axes = [1], keepdims = 0>(x) }""",
    "global of an older opset": """<ir_version: 8, opset_import: ["" : 17]> g (float[2, 3, 7] x)
        => (float[2, 3, 1] y) { y = GlobalLpPool(x) }""",
}


@pytest.mark.parametrize("case", CASES)
def test_the_definition_gives_the_same_numbers(prove, case):
    proof = prove(CASES[case], DefinedForms(), batches=(1, 3), terms=256)
    assert not set(proof.ops) & set(DefinedForms.ops)


@pytest.mark.filterwarnings("ignore:divide by zero")
def test_the_log_of_a_sum_of_large_numbers_is_finite(load, export, run_model):
    graph = load(
        f"{H} g (float[4, 3] x) => (float[4, 1] y) <int64[1] a = {{1}}> {{ y = ReduceLogSumExp(x, a) }}"
    )
    DefinedForms()(graph)
    rows = [[1e4, 1e4, -1e4], [-1e4, -1e4, -1e4], [-np.inf, 0, -np.inf], [-np.inf] * 3]
    (y,) = run_model(export(graph), {"x": np.array(rows, np.float32)})
    right = [1e4 + np.log(2), -1e4 + np.log(3), 0, -np.inf]
    np.testing.assert_allclose(y[:, 0], right, rtol=1e-7)


def test_the_first_of_equal_numbers_is_the_largest(load, export, run_model):
    graph = load(f"{H} g (float[1, 4] x) => (float[1, 4] y) {{ y = Hardmax(x) }}")
    DefinedForms()(graph)
    x = np.array([[1.0, 3.0, 3.0, 2.0]], np.float32)
    (y,) = run_model(export(graph), {"x": x})
    np.testing.assert_array_equal(y, [[0.0, 1.0, 0.0, 0.0]])


def test_windows_that_are_cut_off_are_refused(refusals):
    text = f"""{H} g (float[2, 3, 8] x) => (float[2, 3, 4] y)
        {{ y = LpPool<kernel_shape = [3], strides = [2], ceil_mode = 1>(x) }}"""
    assert refusals(text, DefinedForms()) == [
        "windows that are cut off are averaged over what is left of them"
    ]
