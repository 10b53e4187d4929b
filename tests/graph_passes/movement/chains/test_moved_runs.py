"""Where elements lie is counted in runs that stay together, and is what executing the nodes shows."""

import numpy as np
import onnx
import onnx_graphsurgeon as gs
import pytest
from onnx.reference import ReferenceEvaluator

from wpk.graph_passes.movement.chains.element_places import moved_from, moved_runs

CHAINS = {
    "rows are parted in windows": (
        "a = Reshape(x, w) b = Transpose<perm = [0, 2, 1, 3]>(a) z = Reshape(b, v)",
        "int64[4] w = {2, 3, 4, 8}, int64[3] v = {4, 6, 8}",
        8,
    ),
    "rows are chosen": ("z = Gather<axis = 1>(x, w)", "int64[3] w = {5, 0, 7}", 8),
    "rows are cut": (
        "z = Slice(x, w, v, u)",
        "int64[1] w = {3}, int64[1] v = {9}, int64[1] u = {1}",
        8,
    ),
    "an axis in front is cut from behind": (
        "z = Slice(x, w, v, u)",
        "int64[1] w = {3}, int64[1] v = {9}, int64[1] u = {-2}",
        8,
    ),
    "heads are parted": (
        "a = Reshape(x, w) z = Transpose<perm = [0, 2, 1, 3]>(a)",
        "int64[4] w = {2, 12, 2, 4}",
        4,
    ),
    "keys are turned": (
        "a = Reshape(x, w) z = Transpose<perm = [0, 2, 3, 1]>(a)",
        "int64[4] w = {2, 12, 2, 4}",
        1,
    ),
    "elements of rows are chosen": ("z = Gather<axis = -1>(x, w)", "int64[4] w = {5, 0, 7, 1}", 1),
    "rows are cut short": (
        "z = Slice(x, w, v, u)",
        "int64[1] w = {4}, int64[1] v = {8}, int64[1] u = {-1}",
        1,
    ),
    "all axes are cut": (
        "z = Slice(x, w, v)",
        "int64[3] w = {0, 1, 4}, int64[3] v = {2, 5, 8}",
        1,
    ),
    "rows are joined": ("z = Reshape(x, w)", "int64[2] w = {8, 24}", 8),
    "rows become columns of one": ("z = Reshape(x, w)", "int64[2] w = {24, 8}", 8),
    "a dimension of one is last": ("z = Reshape(x, w)", "int64[3] w = {2, 96, 1}", 1),
}


@pytest.mark.parametrize(("nodes", "constants", "run"), CHAINS.values(), ids=CHAINS)
def test_places_are_where_elements_are_found_when_the_nodes_run(
    nodes: str, constants: str, run: int
) -> None:
    model = onnx.parser.parse_model(f"""
        <ir_version: 8, opset_import: ["" : 17]>
        g (float[2, 12, 8] x) => (float[A, B, C] z) <{constants}> {{ {nodes} }}""")
    del model.graph.output[0].type.tensor_type.shape.dim[:]
    x = np.arange(2 * 12 * 8, dtype=np.float32).reshape(2, 12, 8)
    (expected,) = ReferenceEvaluator(model).run(None, {"x": x})
    model.graph.output[0].CopyFrom(
        onnx.helper.make_tensor_value_info("z", onnx.TensorProto.FLOAT, expected.shape)
    )
    graph = gs.import_onnx(onnx.shape_inference.infer_shapes(model, data_prop=True))
    found = moved_runs(graph.outputs[0], graph.inputs[0])
    assert found is not None
    places = moved_from(graph.outputs[0], graph.inputs[0])
    assert places is not None
    np.testing.assert_array_equal(places, expected.astype(np.int64))
    assert found[1] == run
    np.testing.assert_array_equal(found[0] * run, expected.astype(np.int64)[..., ::run])
