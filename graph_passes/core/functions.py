"""Operators as ONNX local functions: make one from nodes, find it from its call, read its body.

An operator is a node of domain ``wpk`` that calls a function of the same name. The function's body
holds the original nodes under their own names, so it is at once the operator's reference and its
list of ONNX nodes. Weights are inputs of the function, fed by initializers at the call; scalars and
the parameters of an operator (axes, shapes, bounds) are constants inside.
"""

import copy
import math
from collections.abc import Iterator, Mapping, Sequence

import onnx
import onnx_graphsurgeon as gs

from wpk.errors import GraphError
from wpk.graph_passes.core.exact import moved_constant
from wpk.graph_passes.core.query import ONNX_DOMAINS, REDUCTIONS, element_type
from wpk.operators import OperatorKind, of_kind

DOMAIN = "wpk"
RUNTIME_DOMAIN = "wpk.onnxruntime"
"""Of functions that no pass makes: lowering's, for what no kernel computes (`wpk.lowering.fallback`)."""
# The first IR version with local functions (onnx/onnx.proto, IR_VERSION_2021_7_30).
FUNCTIONS_IR_VERSION = 8
MAX_WORDS_IN_NAME = 4

# Inputs that only say how an operator works; their constants stay inside the body.
_PARAMETERS: dict[str, tuple[int, ...]] = {
    "Clip": (1, 2),
    "ConstantOfShape": (0,),
    "Expand": (1,),
    "Reshape": (1,),
    "Slice": (1, 2, 3, 4),
    "Squeeze": (1,),
    "Unsqueeze": (1,),
    **dict.fromkeys(REDUCTIONS, (1,)),
}
# Inputs that are weights of an operator whatever their size: always inputs of the function.
_WEIGHTED = of_kind(OperatorKind.PRODUCT, OperatorKind.NORMALISATION, OperatorKind.RECURRENT)

Chain = Sequence[gs.Node]


def is_call(node: gs.Node) -> bool:
    """Tell whether ``node`` calls an operator's function."""
    return bool(node.domain in (DOMAIN, RUNTIME_DOMAIN))


def called(graph: gs.Graph, node: gs.Node) -> gs.Function:
    """Return the function that ``node`` calls.

    Raises:
        GraphError: The graph holds no such function.
    """
    for function in graph.functions:
        if function.domain == node.domain and function.name == node.op:
            return function
    raise GraphError(
        f"node '{node.name}' calls function '{node.op}', which the graph does not hold",
        fix="report this as a bug: a pass removed a function that is still called",
    )


def calls(graph: gs.Graph) -> Iterator[tuple[gs.Node, gs.Function]]:
    """Yield each call of the graph with its function, in the graph's order."""
    functions = {f.name: f for f in graph.functions if f.domain == DOMAIN}
    for node in list(graph.nodes):
        if is_call(node) and node.op in functions:
            yield node, functions[node.op]


def make_call(
    graph: gs.Graph,
    nodes: Sequence[gs.Node],
    output: gs.Tensor,
    chains: Mapping[str, Chain] | None = None,
    stem: str | None = None,
    *,
    beside: gs.Tensor | None = None,
) -> gs.Node:
    """Replace ``nodes`` by one call of a new function that holds them.

    Args:
        graph: Edited: the nodes leave it, the call is appended, the function is added.
        nodes: In an order in which they can run; nothing outside reads what they make, but
            ``output``.
        output: What the function gives.
        chains: For the name of a tensor that the nodes read: nodes outside, in order, the last of
            which makes that tensor. They are copied into the body and stay where they are.
        stem: What its name begins with; by default the operators of its first nodes.
        beside: What the function gives besides ``output``, if anything.

    Returns:
        The call. Its inputs are the tensors that the body reads, in order of first use.
    """
    body = _Body(nodes, chains or {})
    outputs = [output] if beside is None else [output, beside]
    name = _new_function_name(graph, nodes, stem)
    graph.functions.append(body.function(name, outputs, graph.opset))
    sources = [body.sources[key] for key in body.inputs]
    for node in nodes:
        node.inputs.clear()
        node.outputs.clear()
    gone = {id(node) for node in nodes}
    graph.nodes = [node for node in graph.nodes if id(node) not in gone]
    call = gs.Node(name, name, inputs=sources, outputs=outputs, domain=DOMAIN)
    graph.nodes.append(call)
    graph.ir_version = max(graph.ir_version or 0, function_ir_version(graph.opset))
    return call


class _Body:
    """The body of a function under construction: copies of nodes and tensors."""

    def __init__(self, nodes: Sequence[gs.Node], chains: Mapping[str, Chain]) -> None:
        self.nodes: list[gs.Node] = []
        self.copied: dict[int, gs.Tensor] = {}
        self.inputs: dict[int, gs.Variable] = {}
        self.sources: dict[int, gs.Tensor] = {}
        for node in nodes:
            self._add(node, chains)

    def function(self, name: str, outputs: Sequence[gs.Tensor], opset: int) -> gs.Function:
        return gs.Function(
            name,
            domain=DOMAIN,
            nodes=self.nodes,
            inputs=list(self.inputs.values()),
            outputs=[self.copied[id(each)] for each in outputs],
            opset=opset,
            import_domains=[onnx.helper.make_opsetid("", opset)],
        )

    def _add(self, node: gs.Node, chains: Mapping[str, Chain]) -> None:
        for tensor in node.inputs:
            if tensor.name in chains and id(tensor) not in self.copied:
                for link in chains[tensor.name]:
                    if id(link.outputs[0]) not in self.copied:
                        self._add(link, {})
        inputs = [self._read(node, index, tensor) for index, tensor in enumerate(node.inputs)]
        outputs = [self._copy(tensor) for tensor in node.outputs]
        attrs = copy.copy(node.attrs)
        self.nodes.append(gs.Node(node.op, node.name, attrs, inputs, outputs, node.domain))

    def _read(self, node: gs.Node, index: int, tensor: gs.Tensor) -> gs.Tensor:
        if tensor.is_empty():
            return gs.Variable.empty()
        if id(tensor) in self.copied:
            return self.copied[id(tensor)]
        if isinstance(tensor, gs.Constant) and stays_inside(node, index):
            inside = moved_constant(tensor.name, tensor, lambda array: array)
            self.copied[id(tensor)] = inside
            return inside
        self.inputs[id(tensor)] = self._copy(tensor)
        self.sources[id(tensor)] = tensor
        return self.inputs[id(tensor)]

    def _copy(self, tensor: gs.Tensor) -> gs.Variable:
        shape = None if tensor.shape is None else list(tensor.shape)
        self.copied[id(tensor)] = gs.Variable(tensor.name, element_type(tensor), shape)
        return self.copied[id(tensor)]


def stays_inside(node: gs.Node, index: int) -> bool:
    """Whether a constant at this input of ``node`` belongs to the body rather than to the call."""
    if index in _PARAMETERS.get(node.op, ()):
        return True
    size = math.prod(int(dim) for dim in node.inputs[index].shape or ())
    return size == 1 and node.op not in _WEIGHTED


def outside_inputs(node: gs.Node) -> Iterator[gs.Tensor]:
    """Yield the tensors that ``node`` reads, without constants that stay inside a body."""
    for index, tensor in enumerate(node.inputs):
        inside = isinstance(tensor, gs.Constant) and stays_inside(node, index)
        if not tensor.is_empty() and not inside:
            yield tensor


def _new_function_name(graph: gs.Graph, nodes: Sequence[gs.Node], stem: str | None) -> str:
    """Name a function after what it computes, with the first free number."""
    stem = stem or stem_of(nodes)
    taken = {f.name for f in graph.functions} | {node.name for node in graph.nodes}
    number = len(graph.functions)
    while f"{stem}_{number}" in taken:
        number += 1
    return f"{stem}_{number}"


def stem_of(nodes: Sequence[gs.Node]) -> str:
    """Return the operators of the first nodes as one word."""
    words = [n.op.lower() for n in nodes if n.domain in ONNX_DOMAINS and n.op not in _UNNAMED]
    words = words or [node.op.lower() for node in nodes]
    return "_".join(words[:MAX_WORDS_IN_NAME])


_UNNAMED = ("Cast", "Flatten", "Reshape", "Squeeze", "Transpose", "Unsqueeze")


def function_ir_version(opset: int) -> int:
    """Return the IR version of a graph that holds functions at an opset."""
    needed = onnx.helper.OP_SET_ID_VERSION_MAP.get(("ai.onnx", opset), FUNCTIONS_IR_VERSION)
    return max(FUNCTIONS_IR_VERSION, int(needed))
