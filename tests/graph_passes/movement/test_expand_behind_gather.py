"""A repeated index is looked up once."""

import pytest

from wpk.graph_passes.movement.expand_behind_gather import ExpandBehindGather

H = '<ir_version: 8, opset_import: ["" : 17]>'

TEXT = f"""{H} g (float[n, 3] x, float[4, 2] w) => (float[n, 3, 2] y)
    <int64[1, 3] i = {{3, 0, 2}}, int64[1] three = {{3}}, int64[1] first = {{0}}> {{
    s = Shape(x)  b = Gather(s, first)  t = Concat<axis = 0>(b, three)  e = Expand(i, t)
    y = Gather(w, e) }}"""


def test_an_expanded_constant_index_is_looked_up_before_it_is_expanded(prove):
    proof = prove(TEXT, ExpandBehindGather(), constants="w", batches=(1, 4))
    assert proof.graph.nodes[-1].op == "Expand"
    assert [node.inputs[1].name for node in proof.graph.nodes if node.op == "Gather"][-1] == "i"


def test_a_shorter_index_is_expanded_from_the_back(prove):
    text = TEXT.replace("int64[1, 3] i", "int64[3] i")
    assert prove(text, ExpandBehindGather(), constants="w", batches=(1, 4)).ops[-1] == "Expand"


@pytest.mark.parametrize(
    ("text", "constants"),
    [
        (TEXT, ""),
        (TEXT.replace("Gather(w, e)", "Gather<axis = 1>(w, e)").replace("{3, 0, 2}", "{1, 0, 1}")
             .replace("float[n, 3, 2] y", "float[4, n, 3] y"), "w"),
    ],
)  # fmt: skip
def test_other_tables_and_axes_stay(refusals, text, constants):
    assert refusals(text, ExpandBehindGather(), constants) == []
