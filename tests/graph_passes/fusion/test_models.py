"""Whole networks: how many operators they become, and that every body keeps to the grammar."""

import functools

import numpy as np
import onnx
import onnx_graphsurgeon as gs
import pytest
from subjects import exported
from support.each_value import each_value

from wpk.dtypes import ASKED, Precision
from wpk.graph_passes import pass_groups, run_passes
from wpk.graph_passes.core.functions import calls
from wpk.graph_passes.core.kinds import ANCHORS, VIEWS, WITH_PROLOGUE, is_elementwise
from wpk.graph_passes.fusion.attention import NAME as ATTENTION

# Launches that issue numbers allow; a bare Reshape, Flatten or Split is no launch.
BUDGETS = {
    "tv_resnet18.script": 23,
    "tv_resnet18.dynamo": 23,
    "tv_resnet50.dynamo": 56,
    "tv_mobilenet_v2.dynamo": 55,
    "hf_distilbert.dynamo": 3 * 7 + 2,
}


@functools.cache
def refilled(name: str) -> onnx.ModelProto:
    """Return a real exporter's graph with seeded weights."""
    return exported.refill(name, seed=0)


def rewritten(model: onnx.ModelProto, precision: Precision) -> gs.Graph:
    """Run all passes; a second run of the last groups must find nothing."""
    graph = gs.import_onnx(model)
    for index, node in enumerate(graph.nodes):
        node.name = f"{node.name or node.op}_{index}"
    groups = pass_groups(precision)
    for group in groups:
        run_passes(graph, group)
    for group in groups[1:]:
        assert [record.rewritten for record in run_passes(graph, group)] == [0] * len(group)
    return graph


def launches(graph: gs.Graph) -> list[str]:
    """Return the operators that need a kernel."""
    free = ("Flatten", "Reshape", "Split", "Squeeze", "Unsqueeze")
    return [node.op for node in graph.nodes if node.domain == "wpk" or node.op not in free]


def check_grammar(function: gs.Function) -> None:
    """Walk a body: views, cast, prologue, one anchor, epilogue, views; one output."""
    assert len(function.outputs) == 1
    anchors = [node for node in function.nodes if node.op in ANCHORS]
    if function.name.startswith(ATTENTION):
        assert [node.op for node in anchors] == ["MatMul", "Softmax", "MatMul"]
        return
    assert len(anchors) <= 1, function.name
    reached = {id(tensor): "view" for tensor in function.inputs}
    order = ["view", "cast", "before", "anchor", "after", "written"]
    for node in function.nodes:
        stages = [reached[id(t)] for t in node.inputs if id(t) in reached]
        latest = max(stages, key=order.index)
        stage = _stage(node, latest, bool(anchors))
        assert order.index(stage) >= order.index(latest), (function.name, node.name, latest)
        reached[id(node.outputs[0])] = stage
        if node.op in ANCHORS and latest == "before":
            assert node.op in WITH_PROLOGUE
        assert node.outputs[0].dtype is not None
        assert node.outputs[0].shape is not None
    assert id(function.outputs[0]) in reached


def _stage(node: gs.Node, latest: str, anchored: bool) -> str:
    if node.op in VIEWS:
        return "view" if latest == "view" else "written"
    if node.op in ANCHORS:
        return "anchor"
    assert is_elementwise(node), node.op
    assert latest != "written", "an element-wise node after the output's views"
    if node.op == "Cast" and latest == "view":
        return "cast"
    return "after" if latest in ("anchor", "after") or not anchored else "before"


@pytest.mark.slow
@pytest.mark.parametrize(("name", "precision"), each_value(BUDGETS, ASKED))
def test_a_real_network_keeps_its_budget_and_the_grammar(name, precision):
    graph = rewritten(refilled(name), precision)
    kernels = launches(graph)
    assert len(kernels) <= BUDGETS[name], kernels
    assert "Transpose" not in kernels
    for _, function in calls(graph):
        check_grammar(function)
    model = gs.export_onnx(graph)
    onnx.checker.check_model(model, full_check=True)
    before = refilled(name).graph
    assert [i.type for i in model.graph.input] == [i.type for i in before.input]
    assert [o.type for o in model.graph.output] == [o.type for o in before.output]


@pytest.mark.slow
@pytest.mark.parametrize("name", BUDGETS)
def test_a_real_network_gives_the_same_numbers(name, run_model):
    before = refilled(name)
    graph = rewritten(before, Precision.FP32)
    rng = np.random.default_rng(3)
    feeds = {}
    for tensor in graph.inputs:
        shape = [dim if isinstance(dim, int) else 3 for dim in tensor.shape]
        ids = rng.integers(0, 2000, shape)
        feeds[tensor.name] = (
            ids if np.issubdtype(tensor.dtype, np.integer) else rng.standard_normal(shape)
        ).astype(tensor.dtype)
    (old,), (new,) = run_model(before, feeds), run_model(gs.export_onnx(graph), feeds)
    # The bound on the worst element of a whole fp32 network.
    rms = float(np.sqrt((old.astype(np.float64) ** 2).mean()))
    assert float(np.abs(old - new).max()) <= 5e-5 * rms


@pytest.mark.slow
def test_the_first_convolution_of_a_network_reads_the_models_layout():
    graph = rewritten(refilled("tv_resnet18.script"), Precision.FP16)
    functions = [function for _, function in calls(graph)]
    assert functions[0].inputs[0].shape == ["batch", 3, 224, 224]
    assert [node.op for node in functions[0].nodes] == ["Cast", "Conv", "Relu", "Transpose"]


@pytest.mark.slow
def test_bodies_name_every_node_of_the_network():
    model = refilled("tv_resnet50.dynamo")
    graph = rewritten(model, Precision.FP32)
    inside = [node.op for _, function in calls(graph) for node in function.nodes]
    # The first block's two 1x1 convolutions of one input become one; Relu is of one of them only.
    joined = {"Conv": 1, "Relu": 1}
    for op in ("Conv", "Relu", "Add", "MaxPool", "Gemm"):
        count = sum(node.op_type == op for node in model.graph.node)
        assert inside.count(op) == count - joined.get(op, 0)
