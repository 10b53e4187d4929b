"""Operators that were lowered before are not lowered again; others are, however little they differ in."""

from collections.abc import Callable

import numpy as np
import onnx
import onnx_graphsurgeon as gs
import pytest

from wpk.dtypes import Precision
from wpk.graph_passes import infer_shapes
from wpk.lowering import lower as lowering
from wpk.lowering.graph_copy import copied
from wpk.lowering.known_operators import KnownOperators
from wpk.lowering.program import Program

TEXT = """
<ir_version: 8, opset_import: ["" : 17, "wpk" : 1]>
agraph (float[1,4,6,6] x, float[8,4,3,3] w, float[8,8,3,3] v) => (float[1,8,6,6] y) {
  a = wpk.conv_leaky_0(x, w)
  y = wpk.conv_clip_1(a, v)
}
<domain: "wpk", opset_import: ["" : 17]>
conv_leaky_0 (x, w) => (y) { a = Conv <pads = [1,1,1,1]> (x, w)  y = LeakyRelu <alpha = 0.5> (a) }
<domain: "wpk", opset_import: ["" : 17]>
conv_clip_1 (a, v) => (y) {
  b = Conv <pads = [1,1,1,1]> (a, v)
  low = Constant <value = float {-1.0}> ()
  y = Clip(b, low)
}
"""


def graph_of(text: str = TEXT) -> gs.Graph:
    model = onnx.parser.parse_model(text)
    rng = np.random.default_rng(0)
    for name, filters in (("w", 4), ("v", 8)):
        model.graph.input.pop()
        values = rng.standard_normal((8, filters, 3, 3)).astype(np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(values, name))
    graph = gs.import_onnx(model)
    bodies = [node for function in graph.functions for node in function.nodes]
    for index, node in enumerate([*graph.nodes, *bodies]):
        node.name = f"{node.op}_{index}"
    infer_shapes(graph)
    for tensor in graph.tensors().values():
        if isinstance(tensor, gs.Constant):
            tensor.values = tensor.values  # read, as loading does: copies share the array
    return graph


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the operators whose bodies are read."""
    names: list[str] = []
    body_of = lowering.read_body

    def told(body, *args):
        names.append(body.name)
        return body_of(body, *args)

    monkeypatch.setattr(lowering, "read_body", told)
    return names


def lowered(graph: gs.Graph, known: KnownOperators | None = None) -> Program:
    return lowering.lower(graph, Precision.FP32, {}, known=known)


def parts(program: Program) -> tuple[object, ...]:
    constants = {name: array.tobytes() for name, array in program.constants.items()}
    return program.operators, program.values, program.buffers, constants


def test_a_copy_of_a_graph_is_lowered_without_reading_a_body_again(read: list[str]) -> None:
    graph, known = graph_of(), KnownOperators()
    first = lowered(copied(graph), known)
    assert len(read) == 2
    assert parts(lowered(copied(graph), known)) == parts(first)
    assert len(read) == 2


def test_an_operator_of_another_name_is_the_same_with_constants_of_its_name(
    read: list[str],
) -> None:
    graph, known = graph_of(), KnownOperators()
    lowered(copied(graph), known)
    other = copied(graph)
    other.nodes[1].name = "conv_clip_7"
    read.clear()
    program = lowered(other, known)
    assert read == []
    assert parts(program) == parts(lowered(other))
    assert program.operators[1].name == "conv_clip_7"


def body(graph: gs.Graph, op: str) -> gs.Node:
    return next(node for f in graph.functions for node in f.nodes if node.op == op)


def an_attribute(graph: gs.Graph) -> None:
    body(graph, "LeakyRelu").attrs["alpha"] = 0.25


def a_number_inside(graph: gs.Graph) -> None:
    number = np.asarray(-2.0, np.float32)
    constant = body(graph, "Constant")
    constant.attrs["value"] = gs.Constant("low", number)


def a_weight(graph: gs.Graph) -> None:
    node = graph.nodes[0]
    node.inputs[1] = gs.Constant("w", node.inputs[1].values * 2)


def the_operator(graph: gs.Graph) -> None:
    node = body(graph, "LeakyRelu")
    node.op = "Elu"


@pytest.mark.parametrize(
    ("edit", "anew"),
    [
        (an_attribute, 0),
        (a_number_inside, 1),
        (a_weight, 0),
        (the_operator, 0),
    ],
)
def test_what_differs_in_one_thing_is_lowered_anew(
    read: list[str], edit: Callable[[gs.Graph], None], anew: int
) -> None:
    graph, known = graph_of(), KnownOperators()
    usual = lowered(copied(graph), known)
    other = copied(graph)
    edit(other)
    read.clear()
    program = lowered(other, known)
    assert read == [other.nodes[anew].name]
    assert parts(program) == parts(lowered(other))
    assert parts(program) != parts(usual)


def test_the_place_of_what_is_read_and_written_counts(read: list[str]) -> None:
    graph, known = graph_of(), KnownOperators()
    lowered(copied(graph), known)
    text = TEXT.replace("float[1,4,6,6]", "float[2,4,6,6]").replace("[1,8,6,6]", "[2,8,6,6]")
    other = graph_of(text)
    read.clear()
    program = lowered(other, known)
    assert len(read) == 2
    assert parts(program) == parts(lowered(other))
