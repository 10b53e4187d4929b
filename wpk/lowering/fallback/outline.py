"""A group of nodes becomes one node that calls a local function, and a call its nodes again.

The function's tensors keep their names, so that subgraphs (If, Loop, Scan) find in it what they read
outside of themselves.
"""

from collections.abc import Collection, Iterator, Sequence

import onnx
import onnx_graphsurgeon as gs

from wpk.graph_passes import (
    RUNTIME_DOMAIN,
    called,
    function_ir_version,
    moved_constant,
    read_tensors,
)
from wpk.lowering.flat_graph import read_names

_Exporter = gs.exporters.onnx_exporter.OnnxExporter
_Importer = gs.importers.onnx_importer.OnnxImporter


def outline(graph: gs.Graph, nodes: Sequence[gs.Node]) -> gs.Node:
    """Replace a group of nodes by a call of a function that holds them.

    Args:
        graph: Edited; its nodes may stand in any order afterwards.
        nodes: In an order in which they can run; a way from one to another never leaves them.

    Returns:
        The call. It reads constants, too, and gives all that others read, or the model does.
    """
    protos = [_Exporter.export_node(node) for node in nodes]
    made = {name for proto in protos for name in proto.output if name}
    known = graph.tensors()
    reads = dict.fromkeys(n for proto in protos for n in read_names(proto) if n and n not in made)
    inputs = [known[name] for name in reads]
    gives = list(_given(graph, nodes, made))
    name = _new_name(graph)
    function = onnx.helper.make_function(
        RUNTIME_DOMAIN,
        name,
        list(reads),
        [tensor.name for tensor in gives],
        protos,
        [onnx.helper.make_opsetid("", graph.opset)],
    )
    graph.functions.append(_Importer.import_function(function, graph.opset))
    _typed(graph.functions[-1], known)
    for node in nodes:
        _forget(node)
    gone = {id(node) for node in nodes}
    graph.nodes = [node for node in graph.nodes if id(node) not in gone]
    call = gs.Node(name, name, inputs=inputs, outputs=gives, domain=RUNTIME_DOMAIN)
    graph.nodes.append(call)
    graph.ir_version = max(graph.ir_version or 0, function_ir_version(graph.opset))
    return call


def open_call(graph: gs.Graph, call: gs.Node) -> None:
    """Put the nodes of an operator's function in place of its call.

    Args:
        graph: Edited; its nodes may stand in any order afterwards.
        call: Of a function without subgraphs.
    """
    function = called(graph, call)
    names = set(graph.tensors()), {node.name for node in graph.nodes}
    inside = {
        id(inner): outer
        for pair in ((function.inputs, call.inputs), (function.outputs, call.outputs))
        for inner, outer in zip(*pair, strict=False)
    }
    call.inputs.clear()
    call.outputs.clear()
    graph.nodes = [node for node in graph.nodes if node is not call]
    for node in function.nodes:
        for tensor in (*node.inputs, *node.outputs):
            if id(tensor) not in inside:
                inside[id(tensor)] = _copy(tensor, call.name, names[0])
        inputs = [inside[id(tensor)] for tensor in node.inputs]
        outputs = [inside[id(tensor)] for tensor in node.outputs]
        name = _free(node.name, call.name, names[1])
        graph.nodes.append(gs.Node(node.op, name, node.attrs, inputs, outputs, node.domain))
    graph.functions = [each for each in graph.functions if each is not function]


def _copy(tensor: gs.Tensor, call: str, taken: set[str]) -> gs.Tensor:
    """A tensor of a body as one of the graph."""
    if tensor.is_empty():
        return gs.Variable.empty()
    name = _free(tensor.name, call, taken)
    if isinstance(tensor, gs.Constant):
        return moved_constant(name, tensor, lambda array: array)
    shape = None if tensor.shape is None else list(tensor.shape)
    return gs.Variable(name, tensor.dtype, shape)


def _given(graph: gs.Graph, nodes: Sequence[gs.Node], made: Collection[str]) -> Iterator[gs.Tensor]:
    """What a group makes that others read, or that leaves the graph."""
    own = {id(node) for node in nodes}
    read = {
        tensor.name for node in graph.nodes if id(node) not in own for tensor in read_tensors(node)
    } | {tensor.name for tensor in graph.outputs}
    for node in nodes:
        yield from (t for t in node.outputs if t.name in made and t.name in read)


def _typed(function: gs.Function, known: dict[str, gs.Tensor]) -> None:
    """Give the function's tensors the types and shapes that they have in the graph."""
    for name, tensor in function.tensors().items():
        outer = known.get(name)
        if outer is not None and isinstance(tensor, gs.Variable):
            tensor.dtype = outer.dtype
            tensor.shape = None if outer.shape is None else list(outer.shape)


def _forget(node: gs.Node) -> None:
    """Let go of a node's tensors, and of those that its subgraphs read."""
    for subgraph in node.subgraphs():
        for inner in subgraph.nodes:
            _forget(inner)
    node.inputs.clear()
    node.outputs.clear()


def _new_name(graph: gs.Graph) -> str:
    taken = {node.name for node in graph.nodes} | {f.name for f in graph.functions}
    number = 0
    while f"onnxruntime_{number}" in taken:
        number += 1
    return f"onnxruntime_{number}"


def _free(name: str, call: str, taken: set[str]) -> str:
    """A name that nothing has yet."""
    new, number = name, 0
    while new in taken:
        number += 1
        new = f"{call}/{name}" if number == 1 else f"{call}/{name}_{number}"
    taken.add(new)
    return new
