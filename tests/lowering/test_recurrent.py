"""Recurrent networks as exporters write them are refused in words, all of what stands in the way."""

from pathlib import Path

import onnx
import pytest
from subjects import exported
from support.networks import small_models

from wpk.dtypes import Precision
from wpk.errors import UnsupportedError
from wpk.lowering.model import lower_model

LSTM = "y0, hn, cn = LSTM<hidden_size=4>(x, w, r, b, , h0, h0)"
ZERO = "zero = Constant<value_ints=[0]>() one = Constant<value_ints=[1]>()"
LAST = "end = Constant<value_ints=[9223372036854775807]>() m = Constant<value_ints=[-1]>()"
PARAMETERS = "float[1,16,3] w, float[1,16,4] r, float[1,32] b"

NETWORKS = {
    "all steps": (
        (
            f"(float[5,2,3] x, {PARAMETERS}, float[1,2,4] h0) => (float[5,2,4] y, float[1,2,4] hn) "
            f"{{ {ZERO} {LSTM} y = Squeeze(y0, one) }}"
        ),
        ["LSTM"],
    ),
    "the last step by a slice": (
        (
            f"(float[5,2,3] x, {PARAMETERS}, float[1,2,4] h0) => (float[2,4] y) {{ {ZERO} {LAST} {LSTM} "
            "s = Squeeze(y0, one) l = Slice(s, m, end, zero) z = Squeeze(l, zero) y = Relu(z) }"
        ),
        ["LSTM"],
    ),
    "both states side by side": (
        (
            f"(float[5,2,3] x, {PARAMETERS}, float[1,2,4] h0) => (float[2,8] y) {{ {ZERO} {LSTM} "
            "c = Concat<axis=2>(hn, cn) s = Squeeze(c, zero) y = Relu(s) }"
        ),
        ["LSTM"],
    ),
    "halves of the state": (
        (
            f"(float[5,2,3] x, {PARAMETERS}, float[1,2,4] h0) => (float[2,2] y, float[2,2] z) "
            f"{{ {ZERO} {LSTM} s = Squeeze(hn, zero) y, z = Split<axis=1>(s) }}"
        ),
        ["LSTM"],
    ),
    "both directions, with a state made of shapes": (
        (
            "(float[5,2,3] x, float[2,16,3] w, float[2,16,4] r, float[2,32] b) => (float[5,2,8] y) { "
            f"{ZERO} s = Shape(x) n = Gather(s, one) two = Constant<value_ints=[2]>() "
            "four = Constant<value_ints=[4]>() c = Concat<axis=0>(two, n, four) h0 = ConstantOfShape(c) "
            'y0, hn, cn = LSTM<hidden_size=4, direction="bidirectional">(x, w, r, b, , h0, h0) '
            "t = Transpose<perm=[0,2,1,3]>(y0) f = Constant<value_ints=[0,0,-1]>() y = Reshape(t, f) }"
        ),
        ["LSTM"],
    ),
    "a free batch in front": (
        (
            f"(float[N,5,3] x, {PARAMETERS}) => (float[N,4] y) {{ {ZERO} s = Shape(x) "
            "n = Gather(s, zero) four = Constant<value_ints=[4]>() c = Concat<axis=0>(one, n, four) "
            f"h0 = ConstantOfShape(c) xt = Transpose<perm=[1,0,2]>(x) {LSTM.replace('(x', '(xt')} "
            "q = Squeeze(y0, one) m = Constant<value=int64 {-1}>() y = Gather<axis=0>(q, m) }"
        ),
        ["Transpose", "Expand", "LSTM"],
    ),
    "two layers of GRU": (
        (
            "(float[5,2,4] x, float[1,12,4] w, float[1,12,4] r, float[1,24] b, float[1,2,4] h0) => "
            f"(float[1,2,4] y) {{ {ZERO} y0, hn = GRU<hidden_size=4, linear_before_reset=1>"
            "(x, w, r, b, , h0) s = Squeeze(y0, one) z0, zn = GRU<hidden_size=4>(s, w, r, b, , h0) "
            "y = Concat<axis=0>(zn) }"
        ),
        ["GRU", "GRU"],
    ),
    "a plain one, flat": (
        (
            "(float[5,2,3] x, float[1,4,3] w, float[1,4,4] r, float[1,8] b, float[1,2,4] h0) => "
            "(float[5,2,4] y) { y0, hn = RNN<hidden_size=4>(x, w, r, b, , h0) "
            "t = Transpose<perm=[0,2,1,3]>(y0) f = Constant<value_ints=[0,0,-1]>() y = Reshape(t, f) }"
        ),
        ["RNN"],
    ),
    "a loop": (
        (
            "(float[2,3] x) => (float[2,3] y) { n = Constant<value=int64 {3}>() "
            "c = Constant<value=bool {1}>() y0 = Loop(n, c, x) <body = b (int64 i, bool ci, float[2,3] p) "
            "=> (bool co, float[2,3] q) { co = Identity(ci) q = Add(p, p) }> y = Relu(y0) }"
        ),
        ["Loop"],
    ),
    "a scan": (
        (
            "(float[2,3] x, float[4,2,3] s) => (float[2,3] y, float[4,2,3] z) { y, z = Scan "
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


def test_an_export_of_two_layers_of_lstm(tmp_path: Path) -> None:
    path = tmp_path / "rnn.onnx"
    onnx.save(exported.refill("rnn_lstm.dynamo", 0), path)
    with pytest.raises(UnsupportedError) as refused:
        lower_model(path, {}, Precision.FP32)
    assert refused.value.what.count("operator LSTM is not supported") == 2
