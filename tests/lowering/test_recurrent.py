"""Recurrent networks as exporters write them: carried by kernels, or refused in words."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from subjects import exported
from support.each_value import each_value
from support.networks import small_models

import wpk
from wpk.dtypes import Precision
from wpk.errors import UnsupportedError
from wpk.lowering.model import lower_model
from wpk.problems import Cell, Matmul, Recurrence

pytestmark = pytest.mark.usefixtures("warm_without_cubins")

LSTM = "y0, hn, cn = LSTM<hidden_size=4>(x, w, r, b, , h0, h0)"
ZERO = "zero = Constant<value_ints=[0]>() one = Constant<value_ints=[1]>()"
LAST = "end = Constant<value_ints=[9223372036854775807]>() m = Constant<value_ints=[-1]>()"
PARAMETERS = "float[1,16,3] w, float[1,16,4] r, float[1,32] b"

CARRIED = {
    "all steps": (
        f"(float[5,2,3] x, {PARAMETERS}, float[1,2,4] h0) => (float[5,2,4] y, float[1,2,4] hn) "
        f"{{ {ZERO} {LSTM} y = Squeeze(y0, one) }}"
    ),
    "the last step by a slice": (
        f"(float[5,2,3] x, {PARAMETERS}, float[1,2,4] h0) => (float[2,4] y) {{ {ZERO} {LAST} {LSTM} "
        "s = Squeeze(y0, one) l = Slice(s, m, end, zero) z = Squeeze(l, zero) y = Relu(z) }"
    ),
    "both states side by side": (
        f"(float[5,2,3] x, {PARAMETERS}, float[1,2,4] h0) => (float[2,8] y) {{ {ZERO} {LSTM} "
        "c = Concat<axis=2>(hn, cn) s = Squeeze(c, zero) y = Relu(s) }"
    ),
    "halves of the state": (
        f"(float[5,2,3] x, {PARAMETERS}, float[1,2,4] h0) => (float[2,2] y, float[2,2] z) "
        f"{{ {ZERO} {LSTM} s = Squeeze(hn, zero) y, z = Split<axis=1>(s) }}"
    ),
    "both directions, with a state made of shapes": (
        "(float[5,2,3] x, float[2,16,3] w, float[2,16,4] r, float[2,32] b) => (float[5,2,8] y) { "
        f"{ZERO} s = Shape(x) n = Gather(s, one) two = Constant<value_ints=[2]>() "
        "four = Constant<value_ints=[4]>() c = Concat<axis=0>(two, n, four) h0 = ConstantOfShape(c) "
        'y0, hn, cn = LSTM<hidden_size=4, direction="bidirectional">(x, w, r, b, , h0, h0) '
        "t = Transpose<perm=[0,2,1,3]>(y0) f = Constant<value_ints=[0,0,-1]>() y = Reshape(t, f) }"
    ),
    "a free batch in front": (
        f"(float[N,5,3] x, {PARAMETERS}) => (float[N,4] y) {{ {ZERO} s = Shape(x) "
        "n = Gather(s, zero) four = Constant<value_ints=[4]>() c = Concat<axis=0>(one, n, four) "
        f"h0 = ConstantOfShape(c) xt = Transpose<perm=[1,0,2]>(x) {LSTM.replace('(x', '(xt')} "
        "q = Squeeze(y0, one) m = Constant<value=int64 {-1}>() y = Gather<axis=0>(q, m) }"
    ),
    "two layers of GRU": (
        "(float[5,2,4] x, float[1,12,4] w, float[1,12,4] r, float[1,24] b, float[1,2,4] h0) => "
        f"(float[1,2,4] y) {{ {ZERO} y0, hn = GRU<hidden_size=4, linear_before_reset=1>"
        "(x, w, r, b, , h0) s = Squeeze(y0, one) z0, zn = GRU<hidden_size=4>(s, w, r, b, , h0) "
        "y = Concat<axis=0>(zn) }"
    ),
    "a plain one, flat": (
        "(float[5,2,3] x, float[1,4,3] w, float[1,4,4] r, float[1,8] b, float[1,2,4] h0) => "
        "(float[5,2,4] y) { y0, hn = RNN<hidden_size=4>(x, w, r, b, , h0) "
        "t = Transpose<perm=[0,2,1,3]>(y0) f = Constant<value_ints=[0,0,-1]>() y = Reshape(t, f) }"
    ),
    "lengths, peepholes, a clip": (
        f"(float[5,2,3] x, {PARAMETERS}, int32[2] l, float[1,2,4] h0, float[1,12] p) => "
        "(float[5,1,2,4] y, float[1,2,4] hn, float[1,2,4] cn) { y, hn, cn = "
        'LSTM<hidden_size=4, clip=0.7, direction="reverse">(x, w, r, b, l, h0, h0, p) }'
    ),
}

UNROLLED = {
    "a scan over steps, backwards, with a free batch in front": (
        "(float[N,4] s, float[N,5,4] x, float[4,4] w) => (float[N,4] y, float[N,5,4] z) { y, z = Scan "
        "<num_scan_inputs=1, scan_input_axes=[1], scan_output_axes=[1], scan_input_directions=[1], "
        "scan_output_directions=[1], body = b (float[M,4] p, float[M,4] t) => (float[M,4] q, float[M,4] u) "
        "{ m = MatMul(p, w) a = Add(m, t) q = Tanh(a) u = Identity(q) }> (s, x) }"
    ),
    "a loop whose steps a shape says": (
        "(float[2,3] x) => (float[2,3] y, float[3,2,3] z) { one = Constant<value=int64 {1}>() "
        "c = Constant<value=bool {1}>() s = Shape(x) n = Gather(s, one) y, z = Loop(n, c, x) "
        "<body = b (int64 i, bool ci, float[2,3] p) => (bool co, float[2,3] q, float[2,3] u) "
        "{ co = Cast<to=9>(ci) f = Cast<to=1>(i) m = Mul(f, p) q = Cos(m) u = Sub(q, p) }> }"
    ),
}
"""Loops, which become copies of their bodies."""

NETWORKS = {
    "an activation with parameters": (
        (
            "(float[5,2,3] x, float[1,4,3] w, float[1,4,4] r) => (float[5,1,2,4] y) "
            '{ y = RNN<hidden_size=4, activations=["LeakyRelu"]>(x, w, r) }'
        ),
        ["RNN"],
    ),
    "coupled gates": (
        (
            "(float[5,2,3] x, float[1,16,3] w, float[1,16,4] r) => (float[5,1,2,4] y) "
            "{ y = LSTM<hidden_size=4, input_forget=1>(x, w, r) }"
        ),
        ["LSTM"],
    ),
    "a loop of as many steps as a number says": (
        (
            "(float[2,3] x) => (float[2,3] y) { n0 = ReduceMax<keepdims=0>(x) "
            "n = Cast<to=7>(n0) c = Constant<value=bool {1}>() y0 = Loop(n, c, x) <body = b (int64 i, bool ci, float[2,3] p) "
            "=> (bool co, float[2,3] q) { co = Identity(ci) q = Add(p, p) }> y = Relu(y0) }"
        ),
        ["Loop"],
    ),
    "a scan of any number of steps": (
        (
            "(float[2,3] x, float[N,2,3] s) => (float[2,3] y, float[N,2,3] z) { y, z = Scan "
            "<num_scan_inputs = 1, body = b (float[2,3] p, float[2,3] t) => (float[2,3] q, float[2,3] u) "
            "{ q = Add(p, t) u = Identity(q) }> (x, s) }"
        ),
        ["Scan"],
    ),
}


@pytest.mark.parametrize(("body", "operators"), NETWORKS.values(), ids=NETWORKS.keys())
def test_lists_what_stands_in_the_way(tmp_path: Path, body: str, operators: list[str]) -> None:
    path = small_models.write(f"agraph {body}", tmp_path)
    with pytest.raises(UnsupportedError) as refused:
        lower_model(path, {}, Precision.FP32)
    rows = [line.split() for line in refused.value.what.splitlines()[1:]]
    assert [operator for _, operator, *_ in rows] == operators
    assert refused.value.__cause__ is None


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("an activation with parameters", "recurrent-operators: the activation Leakyrelu; carried"),
        ("coupled gates", "recurrent-operators: its input and forget gates are coupled"),
    ],
)
def test_says_why(name: str, words: str, tmp_path: Path) -> None:
    path = small_models.write(f"agraph {NETWORKS[name][0]}", tmp_path)
    with pytest.raises(UnsupportedError, match=words):
        lower_model(path, {}, Precision.FP32)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "precision"), each_value([*CARRIED, *UNROLLED], ["fp32", "fp16"]))
def test_gives_what_onnx_runtime_gives(name: str, precision: str, tmp_path: Path) -> None:
    body = (CARRIED | UNROLLED)[name]
    path = small_models.write(f"agraph {body}", tmp_path)
    wpk.optimize(path, tmp_path / "model.plan", target="h200", precision=precision)
    with wpk.load(tmp_path / "model.plan", device="cpu") as engine:
        for size in (1, 3):
            inputs = small_models.draw(path, 0, size)
            for output, right in small_models.expected(path, inputs).items():
                loose = 2e-6 if precision == "fp32" else 5e-3
                np.testing.assert_allclose(engine.run(inputs)[output], right, loose, loose)


@pytest.mark.parametrize("body", CARRIED.values(), ids=CARRIED.keys())
def test_is_carried_by_kernels(body: str, tmp_path: Path) -> None:
    path = small_models.write(f"agraph {body}", tmp_path)
    problems = [each.problem for each in lower_model(path, {}, Precision.FP32).program.operators]
    recurrences = [each for each in problems if isinstance(each, Recurrence)]
    products = [each for each in problems if isinstance(each, Matmul)]
    assert 1 <= len(recurrences) == len(products) <= 2
    assert {(each.steps, each.hidden) for each in recurrences} == {(5, 4)}


def test_an_export_of_two_layers_of_lstm(tmp_path: Path) -> None:
    path = tmp_path / "rnn.onnx"
    onnx.save(exported.refill("rnn_lstm.dynamo", 0), path)
    operators = lower_model(path, {}, Precision.FP32).program.operators
    cells = [o.problem.cell for o in operators if isinstance(o.problem, Recurrence)]
    assert cells == [Cell.LSTM] * 4  # both ways
