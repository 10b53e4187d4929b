"""A body of control flow as a model of its own."""

from collections.abc import Sequence

import onnx

from wpk.closed_models import subgraphs
from wpk.control_flow.surroundings import Surroundings
from wpk.control_flow.types import Body, NotDrivenError, Size, known_shape


def body_model(
    around: Surroundings,
    graph: onnx.GraphProto,
    inputs: Sequence[onnx.ValueInfoProto],
    places: Sequence[int],
    outputs: Sequence[onnx.ValueInfoProto],
) -> Body:
    """Make a body a model that gives some of its outputs, each under a name of its own.

    Args:
        around: What surrounds its node.
        graph: The body.
        inputs: What the node gives it, typed.
        places: The numbers of the outputs that it gives.
        outputs: Their types.

    Raises:
        NotDrivenError: It reads what nothing gives, or something of an unknown shape.
    """
    if graph.sparse_initializer:
        raise NotDrivenError("its body has sparse constants")
    inside = {each.name for each in (*graph.initializer, *graph.input)}
    inside |= {name for node in graph.node for name in node.output}
    names = [name for name in read_names(graph) if name not in inside]
    captured = [name for name in names if name in around.numbers]
    constants = [around.constants[name] for name in names if name in around.constants]
    lost = set(names) - set(captured) - {each.name for each in constants}
    if lost:
        raise NotDrivenError(f"its body reads {min(lost)!r}, which nothing gives")
    taken = inside | set(names)
    given = [_free_name(f"output_{number}", taken) for number in range(len(places))]
    outside = {name: _outside(around, name, taken) for name in captured}
    made = onnx.helper.make_graph(
        [
            *(
                onnx.helper.make_node("Cast", [info.name], [name], name, to=around.type_of(name))
                for name, info in outside.items()
                if info.name != name
            ),
            *graph.node,
            *(
                onnx.helper.make_node("Identity", [graph.output[place].name], [name], name=name)
                for place, name in zip(places, given, strict=True)
            ),
        ],
        graph.name or "body",
        [*inputs, *outside.values()],
        [renamed(info, name) for info, name in zip(outputs, given, strict=True)],
        [*graph.initializer, *constants],
    )
    for each in made.input:
        known_shape(each)
    model = onnx.ModelProto()
    model.CopyFrom(around.model)
    model.graph.CopyFrom(made)
    return Body(model, tuple(around.numbers[name] for name in captured))


def _outside(around: Surroundings, name: str, taken: set[str]) -> onnx.ValueInfoProto:
    """What a body reads from outside, in the type that it has in memory; there under another name."""
    info, code = around.info(name), around.memory_type(name)
    if code == info.type.tensor_type.elem_type or name in around.node.input:
        return info
    return typed(renamed(info, _free_name(f"{name}_outside", taken)), code, known_shape(info))


def read_names(graph: onnx.GraphProto) -> list[str]:
    """What nodes and outputs of a graph read, subgraphs included, each once, without what subgraphs make."""
    found: dict[str, None] = {}
    for node in graph.node:
        found |= dict.fromkeys(name for name in node.input if name)
        for inner in subgraphs(node):
            own = {each.name for each in (*inner.initializer, *inner.input)}
            own |= {name for each in inner.node for name in each.output}
            found |= dict.fromkeys(name for name in read_names(inner) if name not in own)
    return list(found | dict.fromkeys(each.name for each in graph.output))


def typed(info: onnx.ValueInfoProto, code: int, shape: Sequence[Size]) -> onnx.ValueInfoProto:
    """An input or output of a type and shape."""
    return onnx.helper.make_tensor_value_info(info.name, code, shape)


def renamed(info: onnx.ValueInfoProto, name: str) -> onnx.ValueInfoProto:
    """An input or output under another name."""
    made = onnx.ValueInfoProto()
    made.CopyFrom(info)
    made.name = name
    return made


def _free_name(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name
