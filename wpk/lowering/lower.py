"""Lower an optimized graph to operators over values in memory."""

from collections.abc import Callable, Mapping
from functools import partial

import onnx_graphsurgeon as gs

from wpk.dtypes import Precision
from wpk.errors import GraphError, WpkError
from wpk.graph_passes import is_op, producer
from wpk.lowering.anchors.attention import AttentionBody, is_attention
from wpk.lowering.anchors.base import LoweredProblem
from wpk.lowering.anchors.box_selection import BoxSelectionBody, is_box_selection
from wpk.lowering.anchors.feed_forward import FeedForwardBody, is_feed_forward
from wpk.lowering.anchors.normed_product import NormedProductBody, is_normed_product
from wpk.lowering.anchors.pieces import until
from wpk.lowering.anchors.recurrence import RecurrenceBody, is_recurrence
from wpk.lowering.anchors.registry import RULES, SHAPES
from wpk.lowering.anchors.row_moments import moments_home, with_moments
from wpk.lowering.anchors.rows_as_pixels import as_pixels
from wpk.lowering.anchors.squeeze import SqueezeBody, is_squeeze
from wpk.lowering.bare_nodes import lower_bare
from wpk.lowering.body import OperatorBody, read_body, require_supported
from wpk.lowering.choices import LoweringChoices
from wpk.lowering.context import Context
from wpk.lowering.elementwise import lower_elementwise
from wpk.lowering.fallback import HandOver, is_fallback, lower_fallback
from wpk.lowering.free_axis import sized_buffer, sized_value
from wpk.lowering.known_operators import KnownOperators, LoweredOperator, key_of
from wpk.lowering.memory_plan import plan_memory
from wpk.lowering.partition import (
    body_of,
    element_type,
    functions_of,
    output_of,
    require_one_output,
)
from wpk.lowering.ports import enter, leave
from wpk.lowering.program import Program
from wpk.lowering.refusal import RefusedError
from wpk.lowering.refused_nodes import RefusedNodes, refusals, require_shape
from wpk.lowering.shape_values import shape_only_nodes
from wpk.lowering.state import LoweringState
from wpk.lowering.symbols import Anchor, Computation
from wpk.lowering.views import NotAViewError, View


def lower(
    graph: gs.Graph,
    precision: Precision,
    free: dict[str, int],
    reasons: Mapping[str, str] | None = None,
    *,
    choices: LoweringChoices | None = None,
    known: KnownOperators | None = None,
    fallback: bool = False,
    driven: bool = False,
) -> Program:
    """Lower the optimized graph.

    Args:
        graph: Output of the graph passes: typed, fused, laid out, with shapes. Nodes that ONNX Runtime
            executes become calls of functions in it.
        precision: The precision asked for.
        free: Tuned values of the free dimensions, by name.
        reasons: Why graph passes left nodes alone, by the node's name; said with a refusal.
        choices: What is decided by a choice, and told where; by default as usually.
        known: Operators of other forms of the model, which grow by those of this; by default none.
        fallback: Whether ONNX Runtime executes what no kernel does.
        driven: Whether control flow may be handed over without, since its bodies become engines.

    Raises:
        UnsupportedError: Some nodes cannot be lowered; the message lists all of them.
        GraphError: Lowering failed where it should not have.
    """
    plain: frozenset[str] = frozenset()
    handed = HandOver(graph)
    known = KnownOperators() if known is None else known
    while True:
        try:
            kept = plain | handed.made
            context, memory = (
                Context(precision, int(graph.opset)),
                plan_memory(graph, kept, choices),
            )
            state = LoweringState(graph, free, kept, context, memory, handed.shapes, known)
            refused = _attempt(state, handed, reasons or {})
            if not refused.nodes:
                if not handed.outline():
                    return _program(state)
            elif not refused.can_be_handed or not _taken(handed, refused, fallback, driven):
                refused.raise_all(fallback=fallback)
        except NotAViewError as obstacle:
            plain |= {obstacle.source}  # lay it out row-major, and begin again
        except WpkError:
            raise
        except Exception as error:
            raise GraphError(
                f"lowering failed: {type(error).__name__}: {error}",
                fix="report this as a bug, with the model",
            ) from error


def _taken(handed: HandOver, refused: RefusedNodes, fallback: bool, driven: bool) -> bool:
    """Whether what was refused is handed over."""
    if fallback:
        return handed.take(refused.nodes)
    return driven and handed.take_driven(refused.nodes)


def _attempt(state: LoweringState, handed: HandOver, reasons: Mapping[str, str]) -> RefusedNodes:
    """Lower all nodes but those that are handed over, with the tensors in ``state.plain`` in plain layout.

    Raises:
        NotAViewError: The layout of another tensor stands in the way.
        GraphError: Lowering failed where it should not have.
    """
    graph, refused = state.graph, RefusedNodes(state, reasons)
    functions, shapes_only = functions_of(graph), shape_only_nodes(graph, handed.names)
    for tensor in graph.inputs:
        with refusals(state, partial(refused.add_port, "input", tensor)):
            enter(state, tensor)
    for node in graph.nodes:
        if node.name in handed.names:
            refused.stand_in(node)
            continue
        if node.name in shapes_only:
            continue
        with refusals(state, partial(refused.add, node)):
            if is_fallback(node):
                lower_fallback(state, node, handed.notes[node.name])
            elif not lower_bare(state, node):
                _lower_call(state, node, functions)
            for tensor in node.outputs:
                require_shape(tensor, state.views.get(tensor.name))
    for tensor in graph.outputs:
        if not any(node.name in handed.names for node in tensor.inputs):
            with refusals(state, partial(refused.add_port, "output", tensor)):
                leave(state, tensor)
    return refused


def _program(state: LoweringState) -> Program:
    """What was lowered, without what nothing uses."""
    graph = state.graph
    used = {name for operator in state.operators for name in operator.inputs}
    return Program(
        inputs=tuple(t.name for t in graph.inputs),
        outputs=tuple(t.name for t in graph.outputs if t.name not in state.kept),
        values={n: sized_value(v, state.free) for n, v in state.memory.values.items()},
        constants={n: v for n, v in state.context.constants.items() if n in used},
        buffers={n: sized_buffer(b, state.free) for n, b in state.memory.buffers.items()},
        operators=tuple(state.operators),
        free=state.free,
        limits={name: (1, size) for name, size in state.largest.items()},
        models=state.models,
        kept=state.kept,
        kept_outputs=tuple(t.name for t in graph.outputs if t.name in state.kept),
    )


def _lower_call(state: LoweringState, node: gs.Node, functions: dict[str, gs.Function]) -> None:
    """Lower the body that a node calls.

    Raises:
        NotAViewError: A layout stands in the way: of a tensor, or of a part of it that must become a copy.
    """
    try:
        _lower_body(state, node, functions)
    except NotAViewError as obstacle:
        raise (_part_in_the_way(state, node, obstacle) or obstacle) from None


def _part_in_the_way(
    state: LoweringState, node: gs.Node, obstacle: NotAViewError
) -> NotAViewError | None:
    """Return the obstacle that is a slice of a plain tensor: its rows do not lie together, a copy's do."""
    for tensor in node.inputs if obstacle.source in state.plain else ():
        made = producer(tensor)
        if made is None or not is_op(made, "Slice") or tensor.name in state.plain:
            continue
        if state.view(tensor).source == obstacle.source:
            return NotAViewError(tensor.name, tuple(tensor.shape), tuple(tensor.shape))
    return None


def _lower_body(state: LoweringState, node: gs.Node, functions: dict[str, gs.Function]) -> None:
    body = body_of(node, functions)
    whole = next((reader for fits, reader in _WHOLE if fits(body)), None)
    if whole is None:
        require_supported(until(body, body.output) if body.beside else body, SHAPES)
    require_one_output(node, {t.name for t in state.graph.outputs}, body.beside)
    inputs = {
        inner: state.view(outer)
        for inner, outer in zip(body.inputs, node.inputs, strict=False)
        if inner and outer.name
    }
    if whole is not None:
        _emit_whole(state, node, body, whole(body, inputs, state.context))
        return
    output = output_of(node) or node.outputs[0]
    if body.beside:
        _lower_with_moments(state, node, body, inputs)
        return
    key = key_of(node, body, (output.name, element_type(output)), inputs, state.context)
    made = state.known.find(key, body.name, state.context)
    if made is None or made.home != state.memory.home(
        output.name, element_type(output), made.shape, made.leading
    ):
        before = dict(state.context.constants)
        made = _lowered(state, body, inputs, output, joins_rows=True)
        state.known.keep(key, body.name, made, before, state.context)
    state.views[output.name] = made.home
    state.append(
        node.name, body.onnx_nodes, made.problem, made.lowered.inputs, output.name, node.name
    )


def _lower_with_moments(
    state: LoweringState, node: gs.Node, body: OperatorBody, inputs: Mapping[str, View]
) -> None:
    """Lower the body of a product that gives moments of its rows, too."""
    output, beside = node.outputs
    product = until(body, body.output)
    made = _lowered(state, product, inputs, output, joins_rows=False)
    home = moments_home(state.memory, beside, made.home)
    state.views[beside.name] = home
    lowered = with_moments(made.lowered, home, made.home)
    problem = state.sized(lowered, output.name)
    state.append(
        node.name,
        product.onnx_nodes,
        problem,
        lowered.inputs,
        output.name,
        node.name,
        beside=(beside.name,),
    )


def _lowered(
    state: LoweringState,
    body: OperatorBody,
    inputs: Mapping[str, View],
    output: gs.Tensor,
    *,
    joins_rows: bool,
) -> LoweredOperator:
    """Lower a body, of which nothing is known, to a problem of any kind; ``joins_rows`` where `as_pixels` may."""
    reader = next((reader for fits, reader in _CHAINS if fits(body)), None)
    chain = reader(body, inputs, state.context, SHAPES) if reader is not None else None
    result = chain.result if chain else read_body(body, inputs, state.context, SHAPES)
    home = state.memory.home(output.name, element_type(output), result.shape, result.leading)
    state.views[output.name] = home
    y = result.pulled_back(home)
    if chain is not None:
        lowered = chain.lower(y)
    elif result.anchor is None:
        lowered = lower_elementwise(result, y)
    else:
        lowered = _lower_anchor(result.anchor, result, y, state.context)
        lowered = as_pixels(lowered, state.context) if joins_rows else lowered
    _require_padding(lowered, home)
    problem = state.sized(lowered, output.name)
    return LoweredOperator(result.shape, result.leading, home, lowered, problem)


_WHOLE: tuple[
    tuple[Callable[[OperatorBody], bool], type[RecurrenceBody | BoxSelectionBody]], ...
] = (
    (is_recurrence, RecurrenceBody),
    (is_box_selection, BoxSelectionBody),
)
"""Bodies that a pass has made as a whole, and what reads them."""


_CHAINS: tuple[
    tuple[
        Callable[[OperatorBody], bool],
        type[AttentionBody | NormedProductBody | FeedForwardBody | SqueezeBody],
    ],
    ...,
] = (
    (is_attention, AttentionBody),
    (is_normed_product, NormedProductBody),
    (is_feed_forward, FeedForwardBody),
    (is_squeeze, SqueezeBody),
)
"""Bodies with more than one anchor, and what reads them in pieces."""


def _emit_whole(
    state: LoweringState,
    node: gs.Node,
    body: OperatorBody,
    read: RecurrenceBody | BoxSelectionBody,
) -> None:
    output = node.outputs[0]
    home = state.memory.home(output.name, element_type(output), read.shape, read.leading)
    state.views[output.name] = home
    lowered = read.lower(home)
    _require_padding(lowered, home)
    state.emit(node.name, body.onnx_nodes, lowered, output.name, node.name)


def _require_padding(lowered: LoweredProblem, home: View) -> None:
    """Check that kernels write the padding where it lies.

    Raises:
        NotAViewError: They do not.
    """
    if not lowered.problem.pads_its_columns:
        raise NotAViewError(home.source, home.shape, home.shape)


def _lower_anchor(anchor: Anchor, result: Computation, y: View, context: Context) -> LoweredProblem:
    try:
        return RULES[anchor.node.op].lower(anchor, result, y, context)
    except RefusedError as refusal:
        refusal.locate(anchor.node)
        raise
