"""Norms of whole maps become means that many blocks share."""

import numpy as np
import pytest

from wpk.graph_passes.clean.definitions.long_rows import LongRows

H = '<ir_version: 8, opset_import: ["" : 17]>'


def _text(groups: int = 1, side: int = 64, body: str = "", scale: str = "2", more: str = "") -> str:
    """A group norm as torch writes it, of 4 channels."""
    each = "{" + ", ".join([scale] * groups) + "}"
    none = "{" + ", ".join(["0.5"] * groups) + "}"
    return f"""{H} g (float[n, 4, {side}, {side}] x, float[{groups}] c) => (float[n, 4, {side}, {side}] y{more})
    <int64[3] rows = {{-1, {groups}, {4 // groups * side * side}}}, int64[4] back = {{-1, 4, {side}, {side}}},
    float[{groups}] s = {each}, float[{groups}] b = {none}> {{
    r = Reshape(x, rows)  i = InstanceNormalization<epsilon = 0.01>(r, s, b)  {body}  y = Reshape(i, back) }}"""


def test_a_long_row_is_means_and_arithmetic(prove):
    proof = prove(_text(), LongRows(clusters=False), batches=(1, 3))
    assert proof.ops.count("GlobalAveragePool") == 4
    assert "InstanceNormalization" not in proof.ops


def test_the_variance_is_taken_around_the_mean(load):
    graph = load(_text())
    LongRows(clusters=False)(graph)
    square = next(n for n in graph.nodes if n.op == "Mul" and n.inputs[0] is n.inputs[1])
    assert square.inputs[0].inputs[0].op == "Sub"
    epsilon = next(n for n in graph.nodes if n.op == "Add").inputs[1]
    assert np.float32(epsilon.values) == np.float32(0.01)


@pytest.mark.parametrize(
    "text",
    [
        _text(groups=2),
        _text(side=32),
        _text(more=", float[n, 1, 16384] z", body="z = Neg(i)"),
        _text().replace("(r, s, b)", "(r, c, b)"),
    ],
    ids=["two rows", "short", "another reader", "a scale that is computed"],
)
def test_others_stay(load, text):
    assert LongRows(clusters=False)(load(text)).rewritten == 0


def test_clusters_share_what_is_no_longer_than_a_million(load):
    assert LongRows(clusters=True)(load(_text())).rewritten == 0
    assert LongRows(clusters=True)(load(_text(side=512))).rewritten == 1
