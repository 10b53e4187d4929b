"""One operator of the exported model as a model of its own."""

from collections.abc import Iterable

import onnx

from wpk.tensorrt.exported import operator_of


def operator_model(model: onnx.ModelProto, operator: str) -> onnx.ModelProto:
    """Cut an operator's nodes out of a model.

    Args:
        model: What `wpk.tensorrt.exported` gives, with the types and shapes of all tensors between operators.
        operator: The operator's name.

    Returns:
        A model that reads and gives what the operator's nodes read from and give to others; its constants are theirs.

    Raises:
        ValueError: The model has no such operator, or does not say the type of what it reads or gives.
    """
    graph = model.graph
    nodes = [node for node in graph.node if operator_of(node.name, frozenset({operator}))]
    if not nodes:
        raise ValueError(f"the model has no operator {operator!r}")
    constants = {tensor.name: tensor for tensor in graph.initializer}
    made = {name for node in nodes for name in node.output if name}
    read = list(dict.fromkeys(name for node in nodes for name in node.input if name))
    inside = {id(node) for node in nodes}
    outside = {
        name for node in graph.node if id(node) not in inside for name in node.input if name
    } | {port.name for port in graph.output}
    typed = {info.name: info for info in (*graph.input, *graph.output, *graph.value_info)}
    cut = onnx.helper.make_graph(
        nodes,
        operator,
        _typed((name for name in read if name not in made and name not in constants), typed),
        _typed((name for node in nodes for name in node.output if name in outside), typed),
        [constants[name] for name in read if name in constants],
    )
    return onnx.helper.make_model(
        cut, opset_imports=model.opset_import, ir_version=model.ir_version
    )


def _typed(
    names: Iterable[str], typed: dict[str, onnx.ValueInfoProto]
) -> list[onnx.ValueInfoProto]:
    names = list(names)
    unknown = [name for name in names if name not in typed]
    if unknown:
        raise ValueError(f"the types of {unknown} are unknown")
    return [typed[name] for name in names]
