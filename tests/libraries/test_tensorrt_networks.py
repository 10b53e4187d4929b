"""Problems as TensorRT networks: what they compute, by a double of ours; and that the real builder of TensorRT for RTX takes them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.devices.eager_tensorrt import Module, Network
from support.problems.described import problems

from wpk.dtypes import DType
from wpk.libraries import tensorrt_problems
from wpk.libraries.cudnn_description import Description, GraphTensor, NormNode
from wpk.libraries.cudnn_pointwise import PointwiseCall, PointwiseTensor
from wpk.libraries.cudnn_problems import describe
from wpk.libraries.definition import define
from wpk.libraries.memory import places
from wpk.libraries.tensorrt_layers import why_no_layers
from wpk.libraries.tensorrt_network import INPUT, add_operator, why_no_network
from wpk.libraries.tensorrt_tensors import EngineLayout, layout_of, why_not_dense
from wpk.nvinfer import Binding, network_flags, shared_logger
from wpk.problems import Problem

PROBLEMS = problems()
TAKEN = {
    f"{name} {number}": (problem, number, description)
    for name, problem in PROBLEMS.items()
    for number, description in enumerate(describe(problem))
    if why_no_network(description) is None
}


def memory_of(problem: Problem, layout: str | None) -> tuple[list[Any], list[Any], Any]:
    """Drawn operands as the problem has them, the same in the order of memory, and the output's place."""
    *inputs, output = places(problem, layout)
    rng = np.random.default_rng(3)
    logical, flat = [], []
    for place in inputs:
        array = rng.standard_normal(place.shape)
        order = np.argsort([-s for s in place.tensor.strides], kind="stable")
        logical.append(array)
        flat.append(array.transpose(order).reshape(-1))
    return logical, flat, output


@pytest.mark.parametrize("name", TAKEN)
def test_a_network_computes_the_problem(name: str) -> None:
    problem, _, description = TAKEN[name]
    logical, flat, output = memory_of(problem, description.layout)
    arrays = {INPUT.format(number): each for number, each in enumerate(flat)}
    shapes = [layout_of(each) for each in description.inputs]
    images = [each.format != "LINEAR" for each in shapes]
    for number, is_image in enumerate(images):
        if (
            is_image
        ):  # such an input is declared as it is described, and its format says where it lies
            n, c, h, w = description.inputs[number].dims
            array = arrays[INPUT.format(number)].reshape(n, h, w, c)
            arrays[INPUT.format(number)] = array.transpose(0, 3, 1, 2)
    network = Network(arrays)
    add_operator(Binding(Module, False, "0"), network, description)
    assert network.output is not None
    seen = network.output.array
    if layout_of(description.output).format != "LINEAR":
        seen = seen.transpose(0, 2, 3, 1)
    expected = define(problem, logical)
    order = np.argsort([-s for s in output.tensor.strides], kind="stable")
    in_memory = expected.reshape(output.shape).transpose(order).reshape(-1)
    np.testing.assert_allclose(seen.reshape(-1), in_memory, rtol=2e-6, atol=1e-6)


def test_most_of_what_cudnn_is_told_can_be_told_tensorrt() -> None:
    left = {
        name for name, problem in PROBLEMS.items() if tensorrt_problems.why_not(problem) is not None
    }
    assert left == {"rms", *(f"shared heads {precision}" for precision in ("fp32", "fp16", "bf16"))}
    reason = tensorrt_problems.why_not(PROBLEMS["shared heads fp16"])
    assert "6 heads of queries share 2 heads of keys" in str(reason)


@pytest.mark.parametrize("name", TAKEN)
def test_the_real_builder_takes_it(name: str) -> None:
    """Of TensorRT for RTX, for a GPU that it knows; it is not executed."""
    module = pytest.importorskip("tensorrt_rtx")
    _, _, description = TAKEN[name]
    binding = Binding(module, True, module.__version__)
    builder = module.Builder(shared_logger(module))
    network = builder.create_network(network_flags(binding))
    kept = add_operator(binding, network, description)
    config = builder.create_builder_config()
    config.num_compute_capabilities = 1
    config.set_compute_capability(module.ComputeCapability.SM89, 0)
    data = builder.build_serialized_network(network, config)
    del kept
    assert data is not None
    assert len(bytes(data)) > 0


@pytest.mark.parametrize(
    ("tensor", "layout"),
    [
        (((2, 8, 5, 3), (120, 15, 3, 1), DType.FP16), EngineLayout("LINEAR", (2, 8, 5, 3), None)),
        (((2, 8, 5, 3), (120, 1, 24, 8), DType.FP16), EngineLayout("HWC8", (2, 8, 5, 3), None)),
        (((2, 6, 5, 3), (90, 1, 18, 6), DType.FP32), EngineLayout("HWC", (2, 6, 5, 3), None)),
        (
            ((2, 6, 5, 3), (90, 1, 18, 6), DType.FP16),
            EngineLayout("LINEAR", (2, 5, 3, 6), (0, 2, 3, 1)),
        ),
        (((1, 8, 1, 1), (8, 1, 8, 8), DType.FP16), EngineLayout("LINEAR", (1, 8, 1, 1), None)),
        (((3, 4, 5), (20, 1, 4), DType.FP32), EngineLayout("LINEAR", (3, 5, 4), (0, 2, 1))),
    ],
)
def test_where_elements_lie_is_told(tensor: Any, layout: EngineLayout) -> None:
    assert layout_of(GraphTensor(*tensor)) == layout


def test_gaps_and_what_has_no_layer_are_refused_in_words() -> None:
    gaps = GraphTensor((4, 8), (10, 1), DType.FP16)
    dense = GraphTensor((4, 8), (8, 1), DType.FP16)
    norm = NormNode("rmsnorm", 1e-5, False)
    assert "input 1 has gaps" in str(why_not_dense(Description(norm, (dense, gaps), dense)))
    assert "its output has gaps" in str(why_not_dense(Description(norm, (dense,), gaps)))
    with pytest.raises(ValueError, match="not dense"):
        layout_of(gaps)
    assert "no layer for mod" in str(
        why_no_layers((PointwiseCall("mod", (PointwiseTensor(0), 2.0)),))
    )
    assert "no rmsnorm without" in str(why_no_network(Description(norm, (dense, dense), dense)))
