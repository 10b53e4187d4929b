"""The ONNX that TensorRT is given: plain, typed, equal to the original, its names telling operators."""

from pathlib import Path

import numpy as np
import onnx
import onnx_graphsurgeon as gs
import pytest
from support.networks import handwritten
from support.networks.small_models import draw, expected

from wpk.dtypes import Precision
from wpk.errors import UnsupportedError
from wpk.lowering.model import lower_model
from wpk.tensorrt import exported, operator_names, operator_of

BELOW = {"regions": 2}
"""What integers that say places lie below: of two images."""


def _graph(name: str, folder: Path, precision: Precision = Precision.FP32) -> gs.Graph:
    return lower_model(handwritten.write(name, folder), {}, precision, ("channels-last",)).graph


@pytest.mark.parametrize("name", handwritten.TEXTS)
def test_it_computes_what_the_model_computes(name: str, tmp_path: Path) -> None:
    path = handwritten.write(name, tmp_path)
    model = exported(_graph(name, tmp_path))
    onnx.checker.check_model(model, full_check=True)
    assert not model.functions
    assert {node.domain for node in model.graph.node} <= {""}
    other = tmp_path / "exported.onnx"
    onnx.save(model, other)
    for size in (1, 3):
        inputs = draw(path, 0, size, BELOW.get(name, 5))
        wanted, seen = expected(path, inputs), expected(other, inputs)
        assert wanted.keys() == seen.keys()
        for key, array in wanted.items():
            np.testing.assert_allclose(seen[key], array, rtol=2e-3, atol=2e-4)


@pytest.mark.parametrize("precision", [Precision.FP16, Precision.BF16])
def test_inputs_and_outputs_keep_their_types(precision: Precision, tmp_path: Path) -> None:
    model = exported(_graph("squeeze_excite", tmp_path, precision))
    ports = [*model.graph.input, *model.graph.output]
    assert {port.type.tensor_type.elem_type for port in ports} == {onnx.TensorProto.FLOAT}
    weights = {tensor.data_type for tensor in model.graph.initializer if tensor.dims}
    assert onnx.TensorProto.FLOAT not in weights


def test_names_tell_the_operator(tmp_path: Path) -> None:
    graph = _graph("squeeze_excite", tmp_path)
    operators = operator_names(graph)
    model = exported(graph)
    owners = {node.name: operator_of(node.name, operators) for node in model.graph.node}
    assert operators == {owner for owner in owners.values() if owner is not None}
    assert owners["conv_hardswish_0/HardSwish_1"] == "conv_hardswish_0"
    assert operator_of("conv_hardswish_01/x", operators) is None
    assert len(owners) == len(model.graph.node)  # unique


def test_the_graph_is_not_changed(tmp_path: Path) -> None:
    graph = _graph("rows", tmp_path)
    before = gs.export_onnx(graph).SerializeToString(deterministic=True)
    exported(graph)
    assert gs.export_onnx(graph).SerializeToString(deterministic=True) == before


def test_types_that_tensorrt_lacks_are_all_listed() -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> agraph (double[2] x) => (double[2] y) {'
        " z = Relu(x) y = Relu(z) }"
    )
    with pytest.raises(UnsupportedError, match="2 tensors have types") as caught:
        exported(gs.import_onnx(model))
    assert "x: DOUBLE" in caught.value.what
    assert "y: DOUBLE" in caught.value.what
