"""Casts of what is given stand behind its views, so that operators take them."""

import pytest

from wpk.graph_passes import run_passes
from wpk.graph_passes.fusion.fuse_operators import FuseOperators
from wpk.graph_passes.fusion.views_before_casts import ViewsBeforeCasts


def _text(body: str, output: str = "float[n, 3, 5, 5] y") -> str:
    return f"""<ir_version: 8, opset_import: ["" : 20]>
        g (int64[n, 5] m, float[n, 3, 5, 5] x) => ({output})
        <int64[4] wide = {{-1, 1, 1, 5}}, int64[3] less = {{-1, 1, 5}}, int64[1] one = {{1}},
        float low = {{-9}}> {{ {body} }}"""


BODY = "c = Cast<to = 9>(m)  r = Reshape(c, wide)  y = Where(r, x, low)"


@pytest.mark.parametrize(
    ("body", "rewritten"),
    [
        (BODY, 1),
        (BODY.replace("r = Reshape(c, wide)", "u = Reshape(c, less)  r = Unsqueeze(u, one)"), 2),
        (
            BODY.replace("Cast<to = 9>(m)", "Cast<to = 9>(n)").replace(
                "c =", "n = Unsqueeze(m, one)  c ="
            ),
            1,
        ),
    ],
)
def test_the_mask_is_cast_where_it_is_read(prove, body, rewritten):
    proof = prove(_text(body), ViewsBeforeCasts(), rewritten=rewritten, batches=(1, 3), settle=True)
    run_passes(proof.graph, [ViewsBeforeCasts()])
    (cast,) = [node for node in proof.graph.nodes if node.op == "Cast"]
    assert cast.outputs[0].outputs[0].op == "Where"
    run_passes(proof.graph, [FuseOperators()])
    assert [n.op for n in proof.graph.nodes if n.op not in ("Reshape", "Unsqueeze")] == ["where_0"]


def test_a_cast_that_others_read_stays(refusals):
    text = _text(BODY + "  z = Not(c)", "float[n, 3, 5, 5] y, bool[n, 5] z")
    assert refusals(text, ViewsBeforeCasts()) == ["'c' has 2 readers"]


def test_what_something_computes_takes_its_cast_itself(refusals):
    text = _text(
        BODY.replace("Cast<to = 9>(m)", "Cast<to = 9>(a)").replace("c =", "a = Abs(m)  c =")
    )
    assert refusals(text, ViewsBeforeCasts()) == []


PATCHES = """<ir_version: 8, opset_import: ["" : 20]>
    g (float[1, 3, 4, 10] x) => (float16[1, 4, 30] y)
    <int64[6] cut = {0, 3, 2, 2, 2, 5}, int64[3] rows = {0, 4, 30}> {
    a = Reshape(x, cut)  b = Transpose<perm = [0, 2, 4, 1, 3, 5]>(a)
    c = Reshape(b, rows)  d = Cast<to = 10>(c)  y = Relu(d) }"""


def test_what_must_be_copied_is_copied_by_its_cast(prove):
    proof = prove(PATCHES, ViewsBeforeCasts())
    assert proof.ops == ["Reshape", "Transpose", "Cast", "Reshape", "Relu"]
    assert ViewsBeforeCasts()(proof.graph).rewritten == 0
    run_passes(proof.graph, [FuseOperators()])
    assert [n.op for n in proof.graph.nodes] == ["cast_1", "Reshape", "relu_0"]


def test_what_others_read_is_copied_once(refusals):
    text = PATCHES.replace("y = Relu(d)", "y = Relu(d)  z = Relu(c)").replace(
        "[1, 4, 30] y", "[1, 4, 30] y, float[1, 4, 30] z"
    )
    assert refusals(text, ViewsBeforeCasts()) == ["'c' has 2 readers"]


@pytest.mark.parametrize(
    "text",
    [
        PATCHES.replace("float[1", "float16[1").replace("float16[1, 4", "float[1, 4").replace("10>", "1>"),
        PATCHES.replace("c = Reshape(b, rows)  d = Cast<to = 10>(c)", "d = Cast<to = 10>(b)").replace(
            "[1, 4, 30]", "[1, 2, 2, 3, 2, 5]"
        ),
        PATCHES.replace("b = Transpose", "e = Abs(a)  b = Transpose").replace("]>(a)", "]>(e)"),
    ],
)  # fmt: skip
def test_casts_stay_that_widen_or_read_in_place_or_have_a_maker(refusals, text):
    assert refusals(text, ViewsBeforeCasts()) == []
