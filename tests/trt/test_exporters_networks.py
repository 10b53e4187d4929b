"""Real exporters' networks, as TensorRT is given them: parsed and built by TensorRT for RTX, with fixed and free batch."""

import sys
from pathlib import Path

import onnx
import pytest

from wpk.dtypes import Precision
from wpk.lowering.model import lower_model
from wpk.options import TensorRTOptions
from wpk.shape_ranges import SizeRange
from wpk.targets import find_target
from wpk.tensorrt import Binding, Request, build, exported

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from subjects import exported as archive  # stands outside the package
from support.each_value import each_value

NETWORKS = (
    "tv_resnet18.dynamo",
    "tv_resnet18.script",
    "tv_resnet50.dynamo",
    "tv_mobilenet_v2.dynamo",
    "tv_densenet121.dynamo",
    "tv_inception_v3.dynamo",
    "hf_distilbert.dynamo",
)


LARGER = {"tv_resnet50.dynamo", "tv_densenet121.dynamo", "tv_inception_v3.dynamo"}
"""Of the same operators as others, in networks that take longer to build: among the exhaustive tests."""

COMBINATIONS = [
    pytest.param(
        *each.values, marks=[pytest.mark.exhaustive] if each.values[0] in LARGER else each.marks
    )
    for each in each_value(NETWORKS, [Precision.FP16, Precision.FP32])
]


@pytest.mark.parametrize(("name", "precision"), COMBINATIONS)
def test_the_network_is_parsed_and_built(
    rtx: Binding, tmp_path: Path, name: str, precision: Precision
) -> None:
    path = tmp_path / "network.onnx"
    onnx.save(archive.refill(name), path)
    built_from(path, precision, rtx)


def test_a_free_batch_is_built_with_its_profile(rtx: Binding, tmp_path: Path) -> None:
    model = archive.refill("tv_resnet18.script")
    for port in (*model.graph.input, *model.graph.output):
        port.type.tensor_type.shape.dim[0].dim_param = "batch"
    del model.graph.value_info[:]
    path = tmp_path / "network.onnx"
    onnx.save(model, path)
    (profile,) = built_from(path, Precision.FP16, rtx).values()
    assert [shape[0] for shape in profile] == [1, 4, 16]


def built_from(path: Path, precision: Precision, rtx: Binding) -> dict[str, object]:
    """The profile of the engine; every operator of the network shows in its layers."""
    graph = lower_model(path, {}, precision).graph
    options, batches = TensorRTOptions(), SizeRange(1, 4, 16)
    model = exported(graph)
    engine = build(rtx, Request(model, find_target("a100"), precision, options, batches))
    assert len(engine.data) > 10_000
    nodes = {node.name for node in model.graph.node}
    told = {layer.node for layer in engine.layers} - {""}
    assert told <= nodes
    assert len(told) > 0.9 * len([node for node in model.graph.node if node.op_type != "Constant"])
    return dict(engine.profile)
