"""Shapes of what Loops carry and collect, which ONNX's inference leaves open.

A body may give its states other shapes. Where a body that is given states of known shapes gives back the
same shapes, so does every turn, and the Loop: whatever their number. Where that number is constant, and
nothing ends the Loop before, what it collects has so many parts.
"""

from collections.abc import Collection, Iterator, Mapping

import onnx
from onnx import numpy_helper, shape_inference

from wpk.control_flow import may_end

_TWO = 2
"""Inputs of a Loop, and of its body, in front of the states."""


def carried_states(
    model: onnx.ModelProto, inferred: Mapping[str, onnx.TypeProto]
) -> Iterator[onnx.ValueInfoProto]:
    """Yield types of outputs of Loops: states that no turn gives another shape, and parts of all turns.

    Args:
        model: Whose Loops.
        inferred: Types of its tensors, as far as they are known.
    """
    free = {each.dim_param for i in model.graph.input for each in i.type.tensor_type.shape.dim}
    known = {info.name: info.type for info in model.graph.input}
    known |= {
        each.name: onnx.helper.make_tensor_type_proto(each.data_type, each.dims)
        for each in model.graph.initializer
    }
    known |= inferred
    for node in model.graph.node:
        if node.op_type == "Loop" and node.domain in ("", "ai.onnx"):
            yield from _of_loop(model, node, known, free - {""})


def _of_loop(
    model: onnx.ModelProto,
    node: onnx.NodeProto,
    known: Mapping[str, onnx.TypeProto],
    free: Collection[str],
) -> Iterator[onnx.ValueInfoProto]:
    body = next(each.g for each in node.attribute if each.name == "body")
    states = [known.get(name) for name in node.input[_TWO:]]
    if len(body.input) != _TWO + len(states):
        return
    names = [info.name for info in body.input[_TWO:]]
    stays = {name for name, kind in zip(names, states, strict=True) if _is_known(kind, free)}
    given = dict[str, onnx.TypeProto]()
    while True:  # a state whose shape changes may change that of another
        given = _given(model, body, dict(zip(names, states, strict=True)), stays, known)
        seen = {
            name: given.get(output.name)
            for name, output in zip(names, body.output[1 : 1 + len(names)], strict=True)
        }
        same = {n for n in stays if _alike(seen[n], states[names.index(n)], free)}
        if same == stays:
            break
        stays = same
    for name, output, kind in zip(names, node.output, states, strict=False):
        if name in stays and output and kind is not None:
            yield onnx.ValueInfoProto(name=output, type=kind)
    turns = _turns(model, node, body)
    parts = body.output[1 + len(names) :]
    for output, part in zip(node.output[len(names) :], parts, strict=False):
        kind = given.get(part.name)
        if output and turns and kind is not None and _is_known(kind, free):
            yield onnx.ValueInfoProto(name=output, type=_collected(kind, turns))


def _turns(model: onnx.ModelProto, node: onnx.NodeProto, body: onnx.GraphProto) -> int:
    """How many turns a Loop takes; 0 where that is not constant."""
    constants = {each.name: each for each in model.graph.initializer}
    count, condition = [*node.input, "", ""][:_TWO]
    holds = not condition or (
        condition in constants and bool(numpy_helper.to_array(constants[condition]).all())
    )
    if count not in constants or not holds or may_end(body, constants):
        return 0
    return max(0, int(numpy_helper.to_array(constants[count]).max(initial=0)))


def _collected(part: onnx.TypeProto, turns: int) -> onnx.TypeProto:
    sizes = [turns, *(each.dim_value or each.dim_param for each in part.tensor_type.shape.dim)]
    return onnx.helper.make_tensor_type_proto(part.tensor_type.elem_type, sizes)


def _given(
    model: onnx.ModelProto,
    body: onnx.GraphProto,
    states: Mapping[str, onnx.TypeProto | None],
    stays: set[str],
    known: Mapping[str, onnx.TypeProto],
) -> dict[str, onnx.TypeProto]:
    """Types of the body's tensors, where states that stay have the shapes that they have at first."""
    alone = onnx.ModelProto()
    alone.CopyFrom(model)
    alone.graph.CopyFrom(body)
    graph = alone.graph
    del graph.value_info[:]
    for info in graph.output:
        info.type.tensor_type.ClearField("shape")  # what the body claims proves nothing
    for info in graph.input:
        kind = states.get(info.name)
        if info.name in stays and kind is not None:
            info.type.CopyFrom(kind)
        elif info.name in states:
            info.type.tensor_type.ClearField("shape")
    inside = {each.name for each in (*graph.input, *graph.initializer)}
    inside |= {name for node in graph.node for name in node.output}
    graph.initializer.extend(each for each in model.graph.initializer if each.name not in inside)
    inside |= {each.name for each in graph.initializer}
    graph.input.extend(
        onnx.ValueInfoProto(name=name, type=kind)
        for name, kind in known.items()
        if name not in inside
    )
    try:
        found = shape_inference.infer_shapes(alone, strict_mode=False, data_prop=True)
    except (shape_inference.InferenceError, RuntimeError, ValueError):
        return {}
    infos = (*found.graph.input, *found.graph.value_info, *found.graph.output)
    return {info.name: info.type for info in infos}


def _is_known(kind: onnx.TypeProto | None, free: Collection[str]) -> bool:
    """Whether every size is a number, or a free dimension of the model."""
    return (
        kind is not None
        and kind.tensor_type.HasField("shape")
        and all(d.HasField("dim_value") or d.dim_param in free for d in kind.tensor_type.shape.dim)
    )


def _alike(one: onnx.TypeProto | None, other: onnx.TypeProto | None, free: Collection[str]) -> bool:
    if one is None or other is None or not _is_known(one, free):
        return False
    shapes = [
        [d.dim_value or d.dim_param for d in each.tensor_type.shape.dim] for each in (one, other)
    ]
    return shapes[0] == shapes[1] and one.tensor_type.elem_type == other.tensor_type.elem_type
