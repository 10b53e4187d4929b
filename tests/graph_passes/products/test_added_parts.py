"""What is added to a part of a tensor and written back is added to the whole, with zeros around it."""

import pytest

from wpk.graph_passes import run_passes
from wpk.graph_passes.catalogue import simplifying_passes
from wpk.graph_passes.products.added_parts import AddedParts

HEAD = '<ir_version: 8, opset_import: ["" : 17]>'
BOUNDS = "int64[1] from = {1}, int64[1] to = {4}, int64[3, 1] places = {1, 2, 3}"


def _text(body: str, term: str = "float[3, 4] t", output: str = "float[5, 4] y") -> str:
    return f"""{HEAD} g (float[5, 4] x, {term}) => ({output})
        <{BOUNDS}, int64[1] rows = {{0}}, int64[1] columns = {{1}}> {{ {body} }}"""


FIRST = "p = Slice(x, from, to, rows)  u = Add(p, t)  y = ScatterND(x, places, u)"


@pytest.mark.parametrize("sum", ["Add(p, t)", "Add(t, p)"])
def test_pads_what_is_added_to_the_first_rows(prove, sum):
    proof = prove(_text(FIRST.replace("Add(p, t)", sum)), AddedParts())
    assert proof.ops == ["Pad", "Add"]
    assert proof.node("Pad").inputs[1].values.tolist() == [1, 0, 1, 0]


TURNED = """p = Slice(x, from, to, columns)  u = Add(p, t)  xt = Transpose<perm = [1, 0]>(x)
    ut = Transpose<perm = [1, 0]>(u)  s = ScatterND(xt, places, ut)  y = Transpose<perm = [1, 0]>(s)"""


def test_pads_what_is_added_to_columns_that_are_turned(load, prove):
    text = _text(TURNED, "float[5, 3] t")
    proof = prove(text, AddedParts())
    assert proof.ops.count("ScatterND") == 0
    graph = load(text)
    run_passes(graph, simplifying_passes())
    assert [node.op for node in graph.nodes] == ["Pad", "Add"]


def test_a_part_of_a_part_is_padded_once(load, prove):
    inner = TURNED.replace("(x,", "(o,").replace("(x)", "(o)").replace(" y ", " i ")
    body = f"o = Slice(x, from, to, rows)  {inner}  y = ScatterND(x, places, i)"
    text = _text(body, "float[3, 3] t")
    graph = load(text)
    run_passes(graph, simplifying_passes())
    ops = [node.op for node in graph.nodes]
    assert (ops.count("Pad"), ops.count("Add"), ops.count("ScatterND")) == (1, 1, 0)
    prove(text, AddedParts(), rewritten=1, settle=True)


@pytest.mark.parametrize(
    ("text", "reasons"),
    [
        (_text(FIRST, "float[4] t"), ["'t' is repeated where it is added"]),
        (_text(FIRST.replace("places, u)", "places, u)  z = Relu(u)"), output="float[5, 4] y, float[3, 4] z"),
         ["'u' has 2 readers"]),
        (_text(FIRST).replace("places = {1, 2, 3}", "places = {1, 3, 2}"), []),
        (_text(FIRST).replace("places = {1, 2, 3}", "places = {2, 3, 4}"), []),
        (_text(FIRST.replace("ScatterND(", 'ScatterND<reduction = "add">(')), []),
        (_text(FIRST.replace("Add(p, t)", "Mul(p, t)")), []),
        (_text(FIRST.replace("Slice(x,", "Slice(z,"), "float[3, 4] t, float[5, 4] z"), []),
    ],
)  # fmt: skip
def test_leaves_other_parts(refusals, text, reasons):
    assert refusals(text, AddedParts()) == reasons


def test_zeros_around_a_cut_term_are_padded_behind_the_cut(prove):
    """A Pad that cuts is no part of the one that is written: what it cuts is gone."""
    body = f"t = Pad(o, cut)  {FIRST}"
    text = _text(body, "float[5, 4] o").replace(
        BOUNDS, f"{BOUNDS}, int64[4] cut = {{-1, 0, -1, 0}}"
    )
    proof = prove(text, AddedParts())
    assert proof.ops == ["Pad", "Pad", "Add"]
