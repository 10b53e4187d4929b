"""Models with external data: what is read, what stays where it lies, and how much memory that takes."""

import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnx_graphsurgeon as gs
import pytest
from onnx import helper, numpy_helper

from wpk.assembly import PackedConstants, input_ports
from wpk.assembly.implementation import by_runtime
from wpk.assembly.weight_store import WeightStore
from wpk.checks import Scope, proven
from wpk.dtypes import Precision
from wpk.errors import GraphError
from wpk.external_data import lies_beside
from wpk.file_arrays import in_file
from wpk.loading import load_graph
from wpk.lowering.model import lower_model
from wpk.progress import silent

_LAYERS, _WIDTH = 12, 1024


@pytest.fixture(name="model", scope="module")
def fixture_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Products one behind the other: 48 MiB of fp32 in a file beside the model."""
    path = tmp_path_factory.mktemp("large") / "m.onnx"
    write(path)
    return path


def write(path: Path, *, together: bool = True) -> None:
    rng, names = np.random.default_rng(0), [f"w{layer}" for layer in range(_LAYERS)]
    values = ["x", *(f"v{layer}" for layer in range(_LAYERS - 1)), "y"]
    weights = [
        numpy_helper.from_array(
            rng.standard_normal((_WIDTH, _WIDTH), np.float32) / np.float32(np.sqrt(_WIDTH)), name
        )
        for name in names
    ]
    nodes = [
        helper.make_node("MatMul", [given, name], [made])
        for given, name, made in zip(values, names, values[1:], strict=False)
    ]
    ports = [helper.make_tensor_value_info(n, 1, [2, _WIDTH]) for n in ("x", "y")]
    graph = helper.make_graph(nodes, "g", ports[:1], ports[1:], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(
        model,
        path,
        save_as_external_data=True,
        all_tensors_to_one_file=together,
        location="m.data" if together else None,
    )


def constants(graph: gs.Graph) -> dict[str, np.ndarray]:
    return {n: t.values for n, t in graph.tensors().items() if isinstance(t, gs.Constant)}


@pytest.mark.parametrize("together", [True, False])
def test_weights_beside_a_model_are_used_where_they_lie(tmp_path: Path, together: bool) -> None:
    write(tmp_path / "m.onnx", together=together)
    expected = {
        each.name: numpy_helper.to_array(each)
        for each in onnx.load(tmp_path / "m.onnx").graph.initializer
    }
    found = constants(load_graph(tmp_path / "m.onnx"))
    assert found.keys() == expected.keys()
    for name, array in found.items():
        assert np.array_equal(array, expected[name])
        assert in_file(array) is array, f"{name} lies in memory"


def test_data_that_are_cut_off_are_refused(model: Path, tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(model.read_bytes())
    data = model.with_name("m.data").read_bytes()
    (tmp_path / "m.data").write_bytes(data[: len(data) - 5])
    with pytest.raises(GraphError, match=r"w11.*m\.data"):
        load_graph(tmp_path / "m.onnx")


@pytest.mark.parametrize("precision", [Precision.FP32, Precision.FP16])
def test_no_stage_holds_all_weights_in_memory(model: Path, precision: Precision) -> None:
    weights = _LAYERS * _WIDTH**2 * 4
    tracemalloc.start()
    try:
        lowered = lower_model(model, {}, precision)
        assert input_ports(lowered.program)
        proven(lowered, Scope(quick=True), silent)
        store = WeightStore(PackedConstants(lowered.program.constants))
        turns = replace(by_runtime(), packing="turned", pack=lambda array: array.T.copy())
        for operator in lowered.program.operators:
            store.names(operator, turns)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert store.bytes() == weights * (1 if precision is Precision.FP32 else 0.5)
    assert peak < 0.75 * weights, f"{peak / 2**20:.0f} MiB for {weights / 2**20:.0f} MiB of weights"


def test_plans_of_a_model_share_what_is_packed(model: Path) -> None:
    program = lower_model(model, {}, Precision.FP16).program
    constants, packed = PackedConstants(program.constants), list[int]()

    def turned(array: np.ndarray) -> np.ndarray:
        packed.append(array.size)
        return array.T

    turns = replace(by_runtime(), packing="turned", pack=turned)
    ways = {operator.name: turns for operator in program.operators}
    first, second = (WeightStore(constants) for _ in range(2))
    constants.prepare((each, ways[each.name]) for each in program.operators)
    for store in (first, second):
        for operator in program.operators:
            store.names(operator, ways[operator.name])
    assert len(packed) == _LAYERS
    assert first.weights == second.weights
    for name, array in first.arrays.items():
        weight = first.weights[name]
        assert weight.packing == "turned"
        assert array is second.arrays[name]
        assert np.array_equal(array, program.constants[weight.constant].T)
    as_it_is = WeightStore(constants).names(program.operators[0], by_runtime())
    assert as_it_is == program.operators[0].inputs


@pytest.mark.parametrize(
    ("kind", "beside"), [("FLOAT16", True), ("BFLOAT16", False), ("FLOAT8E4M3FN", False)]
)
def test_types_that_numpy_lacks_are_read_into_the_model(kind: str, beside: bool) -> None:
    tensor = onnx.TensorProto(
        name="w", dims=[2**21], data_type=onnx.TensorProto.DataType.Value(kind)
    )
    tensor.data_location = onnx.TensorProto.EXTERNAL
    assert lies_beside(tensor) is beside
