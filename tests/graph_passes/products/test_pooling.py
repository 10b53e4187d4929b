"""Average pooling and 1x1 products change places, or become one."""

import pytest

from wpk.graph_passes.products.pooling import PoolBehindProduct, PoolIntoProduct

H = '<ir_version: 8, opset_import: ["" : 19]>'
GIVEN = "float[n, 6, 8, 6] x, float[4, 6, 1, 1] w, float[4] b, float[8, 6, 1, 1] wide, float[4, 6, 3, 3] u"


def _text(body: str) -> str:
    return f"{H} g ({GIVEN}) => (float[n, 4, h, w] y) {{ {body} }}"


@pytest.mark.parametrize("more", ["", ", ceil_mode = 1", ", pads = [0, 0, 0, 0]"])
@pytest.mark.parametrize("bias", ["", ", b"])
def test_a_pooling_that_tiles_becomes_the_window_of_the_product(prove, more, bias):
    body = f"""c = Conv(x, w{bias})
        y = AveragePool<kernel_shape = [2, 3], strides = [2, 3]{more}>(c)"""
    proof = prove(_text(body), PoolIntoProduct(), constants="w b", batches=(1, 3))
    assert proof.ops == ["Conv"]
    assert proof.node("Conv").attrs["strides"] == [2, 3]


@pytest.mark.parametrize("counted", [0, 1])
@pytest.mark.parametrize("bias", ["", ", b"])
def test_a_pooling_goes_behind_the_product_that_narrows(prove, counted, bias):
    body = f"""p = AveragePool<kernel_shape = [3, 3], pads = [1, 1, 1, 1],
        count_include_pad = {counted}>(x)  c = Conv(p, w{bias})  y = Relu(c)"""
    proof = prove(_text(body), PoolBehindProduct(), constants="w b", batches=(1, 3))
    assert proof.ops == ["Conv", "AveragePool", *(["Add"] if bias else []), "Relu"]
    assert proof.node("AveragePool").outputs[0].shape[1] == 4


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (
            "c = Conv(x, w)  y = AveragePool<kernel_shape = [3, 3], strides = [2, 2]>(c)",
            "overlap or leave gaps",
        ),
        (
            "c = Conv(x, w)  y = AveragePool<kernel_shape = [2, 2], strides = [2, 2], pads = [1, 0, 1, 0]>(c)",
            "reach outside the image",
        ),
        (
            "c = Conv(x, w)  y = AveragePool<kernel_shape = [3, 4], strides = [3, 4], ceil_mode = 1>(c)",
            "reach outside the image",
        ),
        (
            "c = Conv(x, w)  y = AveragePool<kernel_shape = [2, 2], strides = [2, 2], dilations = [2, 1]>(c)",
            "is dilated",
        ),
        (
            "c = Conv(x, u)  y = AveragePool<kernel_shape = [2, 2], strides = [2, 2]>(c)",
            "does more than mix the channels",
        ),
        (
            "c = Conv(x, w)  p = AveragePool<kernel_shape = [2, 2], strides = [2, 2]>(c)  m = GlobalMaxPool(c)  y = Mul(p, m)",
            "'c' has 2 readers",
        ),
    ],
)
def test_refuses_to_pool_in_the_product(refusals, body, reason):
    (given,) = refusals(_text(body), PoolIntoProduct(), constants="w b u wide")
    assert reason in given


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (
            "p = AveragePool<kernel_shape = [2, 2], strides = [2, 2]>(x)  y = Conv(p, w)",
            "shrinks the image",
        ),
        ("p = AveragePool<kernel_shape = [2, 2]>(x)  y = Conv(p, wide)", "does not narrow"),
        ("p = AveragePool<kernel_shape = [2, 2]>(x)  y = Conv(p, u)", "does more than mix"),
        ("p = AveragePool<kernel_shape = [2, 2]>(x)  y = Conv<group = 1>(p, b)", "not a constant"),
    ],
)
def test_refuses_to_pool_behind_the_product(refusals, body, reason):
    constants = "u wide w"
    text = _text(body)
    if "(p, b)" in body:
        text, constants = text.replace("(p, b)", "(p, w)"), "u wide"
    if "wide" in body:
        text = text.replace("float[n, 4, h, w] y", "float[n, 8, h, w] y")
    (given,) = refusals(text, PoolBehindProduct(), constants=constants)
    assert reason in given
