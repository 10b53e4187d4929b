"""Moves between channels and places become reshapes and a transpose."""

import pytest

from wpk.graph_passes.block_movement import BlockMovement


@pytest.mark.parametrize(
    ("body", "output"),
    [
        ("y = DepthToSpace <blocksize = 2> (x)", "float[n, 2, 8, 12] y"),
        ('y = DepthToSpace <blocksize = 2, mode = "CRD"> (x)', "float[n, 2, 8, 12] y"),
        ("y = SpaceToDepth <blocksize = 2> (x)", "float[n, 32, 2, 3] y"),
    ],
)
def test_becomes_reshapes_and_a_transpose(prove, body, output):
    text = f"""<ir_version: 8, opset_import: ["" : 17]> g (float[n, 8, 4, 6] x) => ({output})
        {{ {body} }}"""
    proof = prove(text, BlockMovement(), batches=(1, 3))
    assert proof.ops == ["Reshape", "Transpose", "Reshape"]


def test_refuses_unknown_places(refusals):
    text = """<ir_version: 8, opset_import: ["" : 17]> g (float[n, 8, h, w] x) => (float[n, 2, p, q] y)
        { y = DepthToSpace <blocksize = 2> (x) }"""
    assert refusals(text, BlockMovement()) == ["channels and places of 'x' are not known"]
