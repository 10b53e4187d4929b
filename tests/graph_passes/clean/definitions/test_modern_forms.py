"""Old forms become those of opset 20, with the same numbers, or the graph stays as it is."""

import numpy as np
import onnx
import onnx_graphsurgeon as gs
import pytest

from wpk.errors import GraphError
from wpk.graph_passes.clean.definitions.modern_forms import MODERN_OPSET, ModernForms


def _old(body: str, inputs: str, output: str, opset: int = 11) -> str:
    return f'<ir_version: 7, opset_import: ["" : {opset}]> g ({inputs}) => ({output}) {{ {body} }}'


@pytest.mark.parametrize(
    ("body", "inputs", "output", "rewritten"),
    [
        ("y = Softmax <axis = 1> (x)", "float[2, 3, 4] x", "float[2, 3, 4] y", 2),
        ("y = Softmax <axis = 2> (x)", "float[2, 3, 4] x", "float[2, 3, 4] y", 2),
        ("y = Softmax (x)", "float[n, 3, 4] x", "float[n, 3, 4] y", 2),
        ("y = Softmax <axis = 2> (x)", "float[n, 3, 4, 2] x", "float[n, 3, 4, 2] y", 2),
        ("y = LogSoftmax <axis = 0> (x)", "float[2, 3] x", "float[2, 3] y", 2),
        ("y = Softmax (x)", "float[2, 5, 1, 1] x", "float[2, 5, 1, 1] y", 2),
        ("y = Squeeze <axes = [1]> (x)", "float[2, 1, 3] x", "float[2, 3] y", 2),
        ("y = Unsqueeze <axes = [0]> (x)", "float[2, 3] x", "float[1, 2, 3] y", 2),
        ("y = ReduceSum <axes = [1], keepdims = 0> (x)", "float[2, 3] x", "float[2] y", 2),
        ("y = ReduceMean <axes = [1, 2]> (x)", "float[2, 3, 4] x", "float[2, 1, 1] y", 2),
        ("y = ReduceMax (x)", "float[2, 3] x", "float[1, 1] y", 2),
        (
            "y, z = Split <axis = 1, split = [1, 2]> (x)",
            "float[2, 3] x",
            "float[2, 1] y, float[2, 2] z",
            2,
        ),
        ("y, z = Split <axis = 1> (x)", "float[2, 4] x", "float[2, 2] y, float[2, 2] z", 2),
        ("y = Dropout <ratio = 0.3> (x)", "float[2, 3] x", "float[2, 3] y", 2),
        (
            "i = Constant <value = int64[2] {1, 0}> () y = RoiAlign <output_width = 2, spatial_scale = 2.0> (x, r, i)",
            "float[2, 3, 6, 7] x, float[2, 4] r",
            "float[2, 3, 1, 2] y",
            2,
        ),
        ("y = Relu (x)", "float[2, 3] x", "float[2, 3] y", 1),
    ],
)
def test_raises_old_forms(prove, body, inputs, output, rewritten):
    proof = prove(_old(body, inputs, output), ModernForms(), rewritten=rewritten, batches=(1, 3))
    assert proof.graph.opset == MODERN_OPSET


def test_keeps_only_the_inference_output_of_batch_normalization(prove):
    text = _old(
        "y, m, a, b, c = BatchNormalization (x, s, t, u, v)",
        "float[2, 3, 4] x, float[3] s, float[3] t, float[3] u, float[3] v",
        "float[2, 3, 4] y",
    )
    # The five-output form is training's; onnxruntime refuses it, so only the form is compared.
    del prove
    from_text = ModernForms()
    graph = _load_unchecked(text)
    assert from_text(graph).rewritten == 2
    assert len(graph.nodes[0].outputs) == 1


def _load_unchecked(text):
    graph = gs.import_onnx(onnx.parser.parse_model(text))
    for index, node in enumerate(graph.nodes):
        node.name = f"{node.op}_{index}"
    return graph


@pytest.mark.parametrize(
    ("body", "inputs", "output", "reason"),
    [
        (
            "y = Softmax <axis = 2> (x)",
            "float[n, m, 3, 4] x",
            "float[n, m, 3, 4] y",
            "'x' has free dimensions, and Softmax flattens it",
        ),
        (
            'y = Resize <coordinate_transformation_mode = "tf_half_pixel_for_nn"> (x, r, s)',
            "float[1, 1, 2, 2] x, float[8] r, float[4] s",
            "float[1, 1, a, b] y",
            "Resize has mode tf_half_pixel_for_nn, which opset 13 removed",
        ),
        (
            """y = If (c) <then_branch = p () => (float[2] t) { t = Relu(x) },
                else_branch = q () => (float[2] e) { e = Neg(x) }>""",
            "bool c, float[2] x",
            "float[2] y",
            "If holds a subgraph, which would need the new forms too",
        ),
    ],
)
def test_refuses_what_has_no_new_form(refusals, body, inputs, output, reason):
    assert reason in refusals(_old(body, inputs, output), ModernForms())


def test_refuses_an_operator_whose_default_changed(refusals):
    text = _old(
        "y = GridSample (x, c)",
        "float[1, 1, 4, 4] x, float[1, 2, 2, 2] c",
        "float[1, 1, 2, 2] y",
        opset=16,
    )
    (reason,) = refusals(text, ModernForms())
    assert (
        reason == "GridSample changed between opset 16 and 20: attribute 'mode' has another default"
    )


def test_refuses_an_operator_that_is_gone():
    text = _old(
        "y = GroupNormalization <num_groups = 2> (x, s, t)",
        "float[1, 4, 3] x, float[2] s, float[2] t",
        "float[1, 4, 3] y",
        opset=18,
    )
    result = ModernForms()(_load_unchecked(text))
    reasons = [refusal.reason for refusal in result.refusals]
    assert reasons == ["GroupNormalization is not an operator of opset 18"]


def test_leaves_newer_graphs_alone(load):
    graph = load(_old("y = Relu (x)", "float[2] x", "float[2] y", opset=21))
    assert ModernForms()(graph).rewritten == 0
    assert graph.opset == 21


def test_raises_further_where_a_later_pass_needs_it(prove):
    proof = prove(_old("y = Relu (x)", "float[2] x", "float[2] y", opset=20), ModernForms(21))
    assert proof.graph.opset == 21


def test_refuses_an_opset_whose_changes_are_not_known():
    with pytest.raises(GraphError, match="graphs cannot be raised to opset 999"):
        ModernForms(999)


def test_training_batch_normalization_stays():
    text = _old(
        "y, m, a, b, c = BatchNormalization (x, s, t, u, v) z = Relu(m)",
        "float[2, 3, 4] x, float[3] s, float[3] t, float[3] u, float[3] v",
        "float[2, 3, 4] y, float[3] z",
    )
    result = ModernForms()(_load_unchecked(text))
    assert result.rewritten == 0
    assert "in training mode" in result.refusals[0].reason


def test_the_exported_opset_is_the_new_one(load, export):
    graph = load(_old("y = Relu (x)", "float[2] x", "float[2] y"))
    ModernForms()(graph)
    (opset,) = [i.version for i in export(graph).opset_import if i.domain == ""]
    assert opset == MODERN_OPSET
    assert np.issubdtype(graph.outputs[0].dtype, np.floating)


def test_refuses_a_graph_with_functions_of_their_own(refusals):
    text = """<ir_version: 8, opset_import: ["" : 17, "wpk" : 1]>
        g (float[2] x) => (float[2] y) { y = wpk.f(x) }
        <domain: "wpk", opset_import: ["" : 17]> f (x) => (y) { y = Relu(x) }"""
    assert refusals(text, ModernForms()) == ["local function 'f' would need the new forms too"]
