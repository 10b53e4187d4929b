"""Shapes of what Loops carry, which ONNX's inference leaves open: a body may give its states other shapes.

Where a body that is given states of known shapes gives back the same shapes, so does every turn, and the
Loop: whatever their number.
"""

from collections.abc import Iterator, Mapping

import onnx
from onnx import shape_inference

_TWO = 2
"""Inputs of a Loop, and of its body, in front of the states."""


def carried_states(
    model: onnx.ModelProto, inferred: Mapping[str, onnx.TypeProto]
) -> Iterator[onnx.ValueInfoProto]:
    """Yield types of outputs of Loops, states that no turn gives another shape.

    Args:
        model: Whose Loops.
        inferred: Types of its tensors, as far as they are known.
    """
    known = {info.name: info.type for info in model.graph.input}
    known |= {
        each.name: onnx.helper.make_tensor_type_proto(each.data_type, each.dims)
        for each in model.graph.initializer
    }
    known |= inferred
    for node in model.graph.node:
        if node.op_type == "Loop" and node.domain in ("", "ai.onnx"):
            yield from _of_loop(model, node, known)


def _of_loop(
    model: onnx.ModelProto, node: onnx.NodeProto, known: Mapping[str, onnx.TypeProto]
) -> Iterator[onnx.ValueInfoProto]:
    body = next(each.g for each in node.attribute if each.name == "body")
    states = [known.get(name) for name in node.input[_TWO:]]
    if len(body.input) != _TWO + len(states):
        return
    names = [info.name for info in body.input[_TWO:]]
    stays = {name for name, kind in zip(names, states, strict=True) if _is_fixed(kind)}
    while stays:  # a state whose shape changes may change that of another
        given = _given(model, body, dict(zip(names, states, strict=True)), stays, known)
        seen = {
            name: given.get(output.name)
            for name, output in zip(names, body.output[1 : 1 + len(names)], strict=True)
        }
        same = {n for n in stays if _alike(seen[n], states[names.index(n)])}
        if same == stays:
            break
        stays = same
    for name, output, kind in zip(names, node.output, states, strict=False):
        if name in stays and output and kind is not None:
            yield onnx.ValueInfoProto(name=output, type=kind)


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


def _is_fixed(kind: onnx.TypeProto | None) -> bool:
    return (
        kind is not None
        and kind.tensor_type.HasField("shape")
        and all(dim.HasField("dim_value") for dim in kind.tensor_type.shape.dim)
    )


def _alike(one: onnx.TypeProto | None, other: onnx.TypeProto | None) -> bool:
    if one is None or other is None or not _is_fixed(one):
        return False
    shapes = [[d.dim_value for d in each.tensor_type.shape.dim] for each in (one, other)]
    return shapes[0] == shapes[1] and one.tensor_type.elem_type == other.tensor_type.elem_type
