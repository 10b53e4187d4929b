"""The values of a TopK are read at its indices."""

from wpk.graph_passes.movement.selections.ranked_values import RankedValues

H = '<ir_version: 8, opset_import: ["" : 18]>'


def test_values_are_gathered(prove):
    text = f"""{H} g (float[n, 4, 9] x) => (float[n, 4, 3] v, int64[n, 4, 3] i) <int64[1] k = {{3}}> {{
        v, i = TopK(x, k) }}"""
    proof = prove(text, RankedValues(), batches=(1, 3))
    assert proof.ops == ["TopK", "GatherElements"]
    assert proof.graph.nodes[1].attrs == {"axis": -1}


def test_indices_that_nobody_reads_get_a_name(prove):
    text = f"""{H} g (float[5, 4] x) => (float[2, 4] y) <int64[1] k = {{2}}> {{
        v = TopK<axis = 0, largest = 0>(x, k)  y = Neg(v) }}""".replace("v = TopK", "v, i = TopK")
    proof = prove(text, RankedValues())
    assert proof.ops == ["TopK", "GatherElements", "Neg"]


def test_leaves_a_topk_whose_indices_alone_are_read(refusals):
    text = f"""{H} g (float[5, 4] x) => (int64[2, 4] i) <int64[1] k = {{2}}> {{
        v, i = TopK<axis = 0>(x, k) }}"""
    assert refusals(text, RankedValues()) == []
