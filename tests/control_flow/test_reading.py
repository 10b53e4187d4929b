"""What is read of a node, and what nodes are refused that a plan from a stranger may hold."""

import onnx
import pytest
from support.networks.fallback_models import text_model

from wpk.control_flow import NotDrivenError, Turns, read_control_flow
from wpk.dtypes import DType

LOOP = """g (float[2, 5] x, int64 m, bool c) => (float[2, 5] y, float[9, 2, 5] z)
    { y, z = Loop (m, c, x) <body = b (int64 i, bool k, float[2, 5] v) => (bool d, float[2, 5] w, float[2, 5] p)
        { d = HELD  w = Add (v, x)  p = Mul (w, v) }> }"""

SCAN = """g (float[5] s, float[6, 5] x) => (float[5] y, float[6, 5] z)
    { y, z = Scan<num_scan_inputs = 1, body = b (float[5] v, float[5] p) => (float[5] o, float[5] q)
        { o = Add (v, p)  q = Sub (o, v) }> (s, x) }"""


def turns(text: str) -> Turns:
    model = text_model(text)
    codes = [each.type.tensor_type.elem_type for each in model.graph.input]
    names = {onnx.TensorProto.FLOAT: DType.FP32, onnx.TensorProto.INT64: DType.INT64}
    found = read_control_flow(model, [names.get(code, DType.BOOL) for code in codes])
    assert isinstance(found, Turns)
    return found


@pytest.mark.parametrize(
    ("held", "ends"),
    [
        ("Identity (k)", False),
        ("Cast<to = 9> (k)", False),
        ("Constant<value = bool {1}> ()", False),
        ("Constant<value = bool {0}> ()", True),
        ("Identity (c)", True),
        ("Less (i, m)", True),
        ("Not (k)", True),
    ],
)
def test_who_ends_a_loop(held: str, ends: bool) -> None:
    found = turns(LOOP.replace("HELD", held))
    assert found.may_end is ends
    assert found.is_numbered is ("(i" in held)


@pytest.mark.parametrize(
    ("text", "old", "new", "why"),
    [
        (LOOP, "=> (float[2, 5] y,", "=> (float[1, 5] y,", "the shape of its state 'y' changes"),
        (LOOP, "int64 m", "int64[2] m", "'m', which decides, is not one element of int64"),
        (LOOP, "int64 m", "float m", "'m', which decides, is not one element of int64"),
        (LOOP, "bool c", "float c", "'c', which decides, is not one element of bool"),
        (LOOP, "float[9, 2, 5] z", "float z", "'z' has no axis to be cut along"),
        (SCAN, "float[6, 5] z", "float[5, 5] z", "what it slices and gives has"),
        (SCAN, "inputs = 1", "inputs = 1, scan_output_axes = [1]", "another axis than the first"),
        (SCAN, "=> (float[5] y", "=> (float[4] y", "the shape of its state 'y' changes"),
    ],
)
def test_a_node_that_gives_what_it_cannot_is_refused(
    text: str, old: str, new: str, why: str
) -> None:
    text = text.replace("HELD", "Identity (k)")
    assert old in text
    assert turns(text).results == (0, 1)
    with pytest.raises(NotDrivenError, match=why):
        turns(text.replace(old, new))
