"""Moves between channels and places become reshapes and a transpose."""

import numpy as np
import onnx_graphsurgeon as gs
import pytest
from onnx.reference import ReferenceEvaluator

from wpk.graph_passes.movement.transposes.block_movement import BlockMovement


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


def test_space_to_depth_may_keep_channels_in_front(load):
    text = """<ir_version: 13, opset_import: ["" : 28]> g (float[2, 3, 4, 6] x) => (float[2, 12, 2, 3] y)
        { y = SpaceToDepth <blocksize = 2, mode = "CRD"> (x) }"""
    graph = load(text)
    x = np.random.default_rng(0).standard_normal((2, 3, 4, 6)).astype(np.float32)
    (right,) = ReferenceEvaluator(gs.export_onnx(graph)).run(None, {"x": x})
    assert BlockMovement()(graph).rewritten == 1
    (got,) = ReferenceEvaluator(gs.export_onnx(graph)).run(None, {"x": x})
    np.testing.assert_array_equal(got, right)


def test_refuses_unknown_places(refusals):
    text = """<ir_version: 8, opset_import: ["" : 17]> g (float[n, 8, h, w] x) => (float[n, 2, p, q] y)
        { y = DepthToSpace <blocksize = 2> (x) }"""
    assert refusals(text, BlockMovement()) == ["channels and places of 'x' are not known"]
