"""Lower an optimized graph to operators over values in memory."""

import numpy as np
import onnx_graphsurgeon as gs

from wpk.dtypes import DType, Precision
from wpk.errors import UnsupportedError
from wpk.graph_passes.query import ONNX_DOMAINS
from wpk.lowering.anchors.attention import AttentionBody, is_attention
from wpk.lowering.anchors.registry import RULES, SHAPES
from wpk.lowering.bare_nodes import ALIASES, lower_bare
from wpk.lowering.body import read_body
from wpk.lowering.context import Context, constant_view
from wpk.lowering.elementwise import lower_elementwise
from wpk.lowering.memory_map import MemoryMap
from wpk.lowering.partition import body_of, element_type, functions_of
from wpk.lowering.placement import ALIGNMENT, place_concatenations
from wpk.lowering.ports import enter, leave
from wpk.lowering.program import Program
from wpk.lowering.shape_values import shape_only_nodes
from wpk.lowering.split_placement import place_split_parts
from wpk.lowering.state import LoweringState
from wpk.lowering.symbols import RefusedError
from wpk.lowering.views import NotAViewError


def lower(graph: gs.Graph, precision: Precision, free: dict[str, int]) -> Program:
    """Lower the optimized graph.

    Args:
        graph: Output of the graph passes: typed, fused, laid out, with shapes.
        precision: The precision asked for.
        free: Tuned values of the free dimensions, by name.

    Raises:
        UnsupportedError: Some nodes cannot be lowered; the message lists all of them.
    """
    plain: frozenset[str] = frozenset()
    while True:
        try:
            return _attempt(_new_state(graph, precision, free, plain))
        except NotAViewError as obstacle:
            plain |= {obstacle.source}  # lay it out row-major, and begin again


def _new_state(
    graph: gs.Graph, precision: Precision, free: dict[str, int], plain: frozenset[str]
) -> LoweringState:
    movable = _movable(graph, plain)
    slots = place_concatenations(graph, movable)
    shared = place_split_parts(graph, movable, slots)
    slots |= shared.slots
    padded = _padded(graph, movable - set(slots))
    memory = MemoryMap(slots, padded, {**_inner_shapes(graph), **shared.wholes})
    return LoweringState(graph, free, plain, Context(precision), memory)


def _attempt(state: LoweringState) -> Program:
    """The program, with the tensors in ``state.plain`` in plain layout.

    Raises:
        NotAViewError: The layout of another tensor stands in the way.
        UnsupportedError: Some nodes cannot be lowered.
    """
    graph = state.graph
    functions, shapes_only = functions_of(graph), shape_only_nodes(graph)
    refused: list[tuple[str, str, str]] = []
    for tensor in graph.inputs:
        enter(state, tensor)
    for node in graph.nodes:
        if node.name in shapes_only:
            continue
        try:
            if not lower_bare(state, node):
                _lower_body(state, node, functions)
        except (NotAViewError, RefusedError) as refusal:
            if isinstance(refusal, NotAViewError) and refusal.source not in state.plain:
                raise
            refused.append((node.name, node.op, str(refusal)))
            _pretend(state, node)
    if refused:
        raise _unsupported(refused)
    for tensor in graph.outputs:
        leave(state, tensor)
    used = {name for operator in state.operators for name in operator.inputs}
    return Program(
        inputs=tuple(t.name for t in graph.inputs),
        outputs=tuple(t.name for t in graph.outputs),
        values=state.memory.values,
        constants={n: v for n, v in state.context.constants.items() if n in used},
        buffers=state.memory.buffers,
        operators=tuple(state.operators),
        free=state.free,
    )


def _lower_body(state: LoweringState, node: gs.Node, functions: dict[str, gs.Function]) -> None:
    body = body_of(node, functions)
    inputs = {
        inner: state.view(outer)
        for inner, outer in zip(body.inputs, node.inputs, strict=False)
        if inner and outer.name
    }
    attention = AttentionBody(body, inputs, state.context, SHAPES) if is_attention(body) else None
    result = attention.result if attention else read_body(body, inputs, state.context, SHAPES)
    output = node.outputs[0]
    home = state.memory.home(output.name, element_type(output), result.shape, result.leading)
    state.views[output.name] = home
    y = result.pulled_back(home)
    if attention is not None:
        lowered = attention.lower(y)
    elif result.anchor is None:
        lowered = lower_elementwise(result, y)
    else:
        lowered = RULES[result.anchor.node.op].lower(result, y, state.context)
    state.emit(node.name, body.onnx_nodes, lowered, output.name, node.name)


def _pretend(state: LoweringState, node: gs.Node) -> None:
    """Give a refused node's outputs a place, so that the nodes after it are looked at too."""
    for tensor in node.outputs:
        if tensor.shape is None or tensor.name in state.views or not tensor.name:
            continue
        sizes = [state.free.get(n, 1) if isinstance(n, str) else n or 1 for n in tensor.shape]
        try:
            dtype = element_type(tensor)
        except RefusedError:
            dtype = DType.FP32
        zeros = np.broadcast_to(np.zeros((), dtype.numpy), tuple(sizes) or (1,))
        state.views[tensor.name] = constant_view(tensor.name, zeros)


def _padded(graph: gs.Graph, movable: set[str]) -> frozenset[str]:
    """Channels-last tensors that a convolution reads and whose rows do not align."""
    functions = functions_of(graph)
    names = set()
    for tensor in graph.tensors().values():
        if tensor.name not in movable or not tensor.shape or len(tensor.shape) < 3:
            continue
        if not any(_takes_channels_last(node, tensor, functions) for node in tensor.outputs):
            continue
        dtype = element_type(tensor)
        if dtype.is_float and tensor.shape[-1] * dtype.bytes % ALIGNMENT:
            names.add(tensor.name)
    return frozenset(names)


def _takes_channels_last(
    node: gs.Node, tensor: gs.Tensor, functions: dict[str, gs.Function]
) -> bool:
    """Whether a convolution reads the tensor's last axis as its channels."""
    function = functions.get(node.op)
    if function is None:
        return False
    pairs = zip(function.inputs, node.inputs, strict=False)
    names = {inner.name for inner, outer in pairs if outer is tensor}
    for conv in [n for n in function.nodes if n.op == "Conv" and n.attrs.get("group", 1) == 1]:
        made, channels = conv.inputs[0], 1
        while made.inputs and made.inputs[0].op in ("Cast", "Transpose"):
            perm = made.inputs[0].attrs.get("perm", ())
            channels = perm[channels] if perm else channels
            made = made.inputs[0].inputs[0]
        if made.name in names and channels == len(tensor.shape) - 1:
            return True
    return False


def _movable(graph: gs.Graph, plain: frozenset[str]) -> set[str]:
    """Tensors written by an operator that may lie anywhere."""
    fixed = {t.name for t in (*graph.inputs, *graph.outputs)} | plain
    names = set()
    for node in graph.nodes:
        if node.domain in ONNX_DOMAINS and (node.op in ALIASES or node.op == "Split"):
            continue
        names |= {t.name for t in node.outputs[:1] if t.name not in fixed}
    return names


def _inner_shapes(graph: gs.Graph) -> dict[str, tuple[int, ...]]:
    shapes = {}
    for name, tensor in graph.tensors().items():
        inner = list(tensor.shape or ())[1:]
        if all(isinstance(n, int) for n in inner):
            shapes[name] = tuple(inner)
    return shapes


def _unsupported(refused: list[tuple[str, str, str]]) -> UnsupportedError:
    widths = [max(len(row[i]) for row in refused) for i in range(2)]
    table = "\n".join(f"  {n:<{widths[0]}}  {op:<{widths[1]}}  {why}" for n, op, why in refused)
    return UnsupportedError(
        f"{len(refused)} nodes are not supported (node, operator, why):\n{table}",
        fix="replace these operators before exporting, or split the model around them",
    )
