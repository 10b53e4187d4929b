"""Windows with a halo are one Gather of pixels, each with all of its channels."""

import pytest

from wpk.graph_passes.movement.windows.unfolded_pixels import UnfoldedPixels

HEAD = '<ir_version: 8, opset_import: ["" : 17]>'
ROWS = "int64[2, 4] rows = {0, 1, 2, 3, 2, 3, 4, 5}"
COLUMNS = "int64[3, 3] columns = {0, 1, 2, 2, 3, 4, 4, 5, 6}"
UNFOLD = """a = Gather<axis = 2>(x, rows)  b = Transpose<perm = [0, 1, 2, 4, 3]>(a)
    c = Gather<axis = 3>(b, columns)  y = Transpose<perm = [0, 1, 2, 3, 5, 4]>(c)"""


def _text(body: str = UNFOLD, image: str = "2, 5, 6, 7", output: str = "2, 5, 2, 3, 4, 3") -> str:
    return f"{HEAD} g (float[{image}] x) => (float[{output}] y) <{ROWS}, {COLUMNS}> {{ {body} }}"


def test_gathers_pixels_once(prove):
    proof = prove(_text(), UnfoldedPixels())
    assert proof.ops == ["Transpose", "Reshape", "Gather", "Reshape", "Transpose"]
    assert list(proof.node("Gather").outputs[0].shape) == [2, 2 * 3 * 4 * 3, 5]


def test_zeros_are_added_behind_the_turned_image(prove):
    body = "p = Pad(x, pads)  " + UNFOLD.replace("(x, rows)", "(p, rows)")
    text = _text(body, "2, 5, 4, 6").replace(
        ROWS, f"{ROWS}, int64[8] pads = {{0, 0, 1, 0, 0, 0, 1, 1}}"
    )
    proof = prove(text, UnfoldedPixels())
    assert proof.ops == ["Transpose", "Pad", "Reshape", "Gather", "Reshape", "Transpose"]


def test_two_gathers_in_a_row(prove):
    body = "a = Gather<axis = 2>(x, rows)  y = Gather<axis = 4>(a, columns)"
    assert prove(_text(body, output="2, 5, 2, 4, 3, 3"), UnfoldedPixels()).node("Gather")


@pytest.mark.parametrize(
    ("body", "output"),
    [
        ("y = Gather<axis = 2>(x, rows)", "2, 6, 2, 4, 7"),
        ("a = Gather<axis = 1>(x, rows)  y = Gather<axis = 4>(a, columns)", "2, 2, 4, 6, 3, 3"),
        ("a = Gather<axis = 2>(x, rows)  r = Relu(a)  y = Gather<axis = 4>(r, columns)", "2, 6, 2, 4, 3, 3"),
    ],
)  # fmt: skip
def test_leaves_other_gathers(refusals, body, output):
    assert refusals(_text(body, "2, 6, 6, 7", output), UnfoldedPixels()) == []


def test_leaves_images_of_no_batch(refusals):
    assert refusals(_text(image="0, 5, 6, 7", output="0, 5, 2, 3, 4, 3"), UnfoldedPixels()) == []
