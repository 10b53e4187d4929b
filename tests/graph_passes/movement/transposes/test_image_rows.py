"""Images are turned, not the sequences of their pixels."""

import pytest

from wpk.graph_passes.movement.transposes.image_rows import ImageRows

H = '<ir_version: 8, opset_import: ["" : 17]>'
IMAGE = "float[n, 4, 3, 5]"
ROWS = "float[n, 15, 4]"


def _to_image(
    sizes: str = "0, 4, 3, 5", perm: str = "0, 2, 1", given: str = "a", y: str = IMAGE
) -> str:
    return f"""{H} g ({ROWS} x) => ({y} y) <int64[4] s = {{{sizes}}}> {{
        a = Relu(x)  t = Transpose<perm = [{perm}]>({given})  r = Reshape(t, s)  y = Abs(r) }}"""


def _of_image(
    sizes: str = "0, 4, 15", perm: str = "0, 2, 1", also: str = "", given: str = IMAGE
) -> str:
    return f"""{H} g ({given} x) => ({ROWS} y{", float[n, 4, 15] q" if also else ""}) <int64[3] s = {{{sizes}}}> {{
        a = Relu(x)  r = Reshape(a, s)  t = Transpose<perm = [{perm}]>(r)  y = Abs(t)  {also} }}"""


def test_a_sequence_becomes_an_image_before_it_is_turned(prove):
    proof = prove(_to_image(), ImageRows(), batches=(1, 3))
    assert proof.ops == ["Relu", "Reshape", "Transpose", "Abs"]
    assert proof.node("Transpose").attrs["perm"] == [0, 3, 1, 2]
    assert list(proof.node("Transpose").inputs[0].shape) == ["n", 3, 5, 4]


def test_an_image_is_turned_before_it_becomes_a_sequence(prove):
    proof = prove(_of_image(), ImageRows(), batches=(1, 3))
    assert proof.ops == ["Relu", "Transpose", "Reshape", "Abs"]
    assert proof.node("Transpose").attrs["perm"] == [0, 2, 3, 1]


def test_volumes_are_turned_alike(prove):
    proof = prove(_of_image(given="float[n, 4, 3, 1, 5]"), ImageRows(), batches=(2,))
    assert proof.node("Transpose").attrs["perm"] == [0, 2, 3, 4, 1]


def test_what_something_else_reads_stays(refusals):
    assert refusals(_of_image(also="q = Neg(r)"), ImageRows()) == ["'r' has 2 readers"]


@pytest.mark.parametrize(
    "text",
    [
        _to_image("0, 2, 6, 5", y="float[n, 2, 6, 5]"),  # channels are parted
        _to_image("0, 15, 2, 2", "0, 1, 2", y="float[n, 15, 2, 2]"),  # nothing is turned
        _of_image(given="float[n, 2, 6, 5]"),  # channels are joined with rows
        f"""{H} g (float[n, 4, 15] x) => ({ROWS} y) <int64[3] s = {{0, 4, 15}}> {{
            a = Relu(x)  r = Reshape(a, s)  y = Transpose<perm = [0, 2, 1]>(r) }}""",  # a sequence
    ],
)
def test_other_shapes_stay(refusals, text):
    assert refusals(text, ImageRows()) == []
