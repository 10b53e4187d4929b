"""DynamicQuantizeLinear becomes arithmetic: the bytes, scales and zero points are ONNX Runtime's."""

import numpy as np
import onnx
import onnx_graphsurgeon as gs
import onnxruntime
import pytest

from wpk.graph_passes import infer_shapes
from wpk.graph_passes.clean.quantisation.dynamic_quantisation import DynamicQuantisation

RNG = np.random.default_rng(0)
TENSORS = {
    "both signs": RNG.standard_normal((3, 5, 7)),
    "positive": RNG.uniform(2, 3, (4, 6)),
    "negative": RNG.uniform(-3, -2, (4, 6)),
    "zeros": np.zeros((2, 3)),
    "one number": np.array(0.75),
    "a row": RNG.standard_normal(9) * 1e-3,
    "many rows": RNG.standard_normal((130, 127)) * 1e4,
}


def model_of(x: np.ndarray, opset: int = 17) -> onnx.ModelProto:
    shape = "[" + ", ".join(map(str, x.shape)) + "]" if x.shape else ""
    text = f"""<ir_version: 8, opset_import: ["" : {opset}]>
    g (float{shape} x) => (uint8{shape} y, float s, uint8 z)
    {{ y, s, z = DynamicQuantizeLinear (x) }}"""
    return onnx.parser.parse_model(text)


def rewritten(model: onnx.ModelProto) -> gs.Graph:
    graph = gs.import_onnx(model)
    graph.nodes[0].name = "n"
    infer_shapes(graph)
    assert DynamicQuantisation()(graph).rewritten == 1
    assert DynamicQuantisation()(graph).rewritten == 0
    return graph


def run(model: onnx.ModelProto, x: np.ndarray) -> list[np.ndarray]:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model.SerializeToString(), options).run(None, {"x": x})


@pytest.mark.parametrize("opset", [11, 17, 18])
@pytest.mark.parametrize("name", TENSORS)
def test_results_are_those_of_onnx_runtime(name: str, opset: int) -> None:
    x = TENSORS[name].astype(np.float32)
    model = model_of(x, opset)
    after = gs.export_onnx(rewritten(model))
    after.ir_version = 8
    onnx.checker.check_model(after, full_check=True)
    for before, now in zip(run(model, x), run(after, x), strict=True):
        assert (before.dtype, before.shape) == (now.dtype, now.shape)
        np.testing.assert_array_equal(now, before)


def test_rows_are_reduced_first_where_there_is_much_to_reduce() -> None:
    graph = rewritten(model_of(TENSORS["many rows"]))
    assert [node.op for node in graph.nodes].count("ReduceMax") == 2
    graph = rewritten(model_of(TENSORS["both signs"]))
    assert [node.op for node in graph.nodes].count("ReduceMax") == 1


def test_what_nobody_reads_is_no_output() -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]>
    g (float[3, 4] x) => (uint8[3, 4] y) { y, s, z = DynamicQuantizeLinear (x) }"""
    graph = rewritten(onnx.parser.parse_model(text))
    graph.cleanup()
    assert [node.op for node in graph.nodes].count("Cast") == 1


def test_a_tensor_without_a_rank_stays() -> None:
    graph = gs.import_onnx(model_of(TENSORS["zeros"]))
    graph.nodes[0].name, graph.inputs[0].shape = "n", None
    (refusal,) = DynamicQuantisation()(graph).refusals
    assert refusal.reason == "the rank of 'x' is not known"
