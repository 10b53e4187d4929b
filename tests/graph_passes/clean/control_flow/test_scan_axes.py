"""Axes along which a Scan cuts and collects are brought to the front, in nodes of their own."""

import pytest

from wpk.graph_passes.clean.control_flow.scan_axes import ScanAxes

H = '<ir_version: 8, opset_import: ["" : 17]>'
BODY = "body = b (float[2, 3] p, float[2, 3] t) => (float[2, 3] q, float[2, 3] u) { q = Sub(t, p) u = Tanh(q) }"


def scan(shape: str, result: str, how: str) -> str:
    return f"""{H} g (float[2, 3] s, float[{shape}] x) => (float[2, 3] y, float[{result}] z) {{
        y, z = Scan <num_scan_inputs = 1, {how}, {BODY}> (s, x) }}"""


@pytest.mark.parametrize(
    ("shape", "result", "how", "transposes"),
    [
        ("2, 5, 3", "5, 2, 3", "scan_input_axes = [1]", 1),
        ("2, 3, 5", "5, 2, 3", "scan_input_axes = [-1], scan_input_directions = [1]", 1),
        ("5, 2, 3", "2, 5, 3", "scan_output_axes = [-2], scan_output_directions = [1]", 1),
        ("2, 3, 5", "2, 3, 5", "scan_input_axes = [2], scan_output_axes = [2]", 2),
        ("2, N, 3", "2, 3, N", "scan_input_axes = [1], scan_output_axes = [2]", 2),
    ],
)
def test_any_axis_and_direction(prove, shape, result, how, transposes):
    proof = prove(scan(shape, result, how), ScanAxes(), batches=(1, 4))
    assert proof.ops.count("Transpose") == transposes
    (node,) = [each for each in proof.graph.nodes if each.op == "Scan"]
    assert not [name for name in node.attrs if "axes" in name]


def test_several_inputs_and_an_output_that_nobody_reads(prove):
    text = f"""{H} g (float[3] s, float[4, 3] x, float[3, 4] w) => (float[3, 4] a) {{
        y, z, a = Scan <num_scan_inputs = 2, scan_input_axes = [0, 1], scan_output_axes = [1, 1],
            body = b (float[3] p, float[3] t, float[3] m) => (float[3] q, float[3] u, float[3] e)
            {{ q = Mul(p, t) u = Neg(q) e = Sub(q, m) }}> (s, x, w) }}"""
    assert prove(text, ScanAxes()).ops.count("Transpose") == 2


def test_first_axes_stay(load):
    graph = load(scan("5, 2, 3", "5, 2, 3", "scan_input_axes = [0]"))
    assert ScanAxes()(graph).rewritten == 0


def test_an_unknown_rank_is_said(load):
    graph = load(scan("2, 5, 3", "5, 2, 3", "scan_input_axes = [1]"))
    graph.nodes[0].inputs[1].shape = None
    (said,) = [each.reason for each in ScanAxes()(graph).refusals]
    assert said == "the rank of 'x' is not known"
