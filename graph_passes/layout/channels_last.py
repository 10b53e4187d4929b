"""Store feature maps channels last, as tensor cores and vector accesses want them.

    conv(x)  ->  y          x, y in NCHW, conv's body: Conv
    conv'(x) ->  y'         x, y' in NHWC, conv's body: Transpose, Conv, Transpose

Transposes inside a body are strides to its kernel. The first operator reads the model's own
order and the last one writes it, without transposes. Data movements between operators get their
axes renamed; what cannot follow reads a transposed copy, and transposes that meet cancel.
"""

from functools import partial

import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor, GraphPass, PassResult
from wpk.graph_passes.core.exact import moved_constant
from wpk.graph_passes.core.functions import called, is_call, make_call
from wpk.graph_passes.core.kinds import SPATIAL, is_anchor, is_elementwise
from wpk.graph_passes.core.query import is_op, rank
from wpk.graph_passes.core.tidy import remove_dead_nodes, sort_nodes
from wpk.graph_passes.layout.axes import RANKS, rename_axes, to_first, to_last
from wpk.graph_passes.layout.body_orders import body_anchor
from wpk.graph_passes.layout.values import LayoutPlan
from wpk.graph_passes.movement.chains.shortest_views import fold_views


class ChannelsLast(GraphPass):
    """Make spatial operators, and what lies between them, read and write channels last."""

    name = "channels-last"
    is_choice = True

    def apply(self, graph: gs.Graph) -> PassResult:
        """Plan all values, then rewrite; counts the values whose order changed."""
        result = PassResult()
        result.rewritten = _wrap_bare_nodes(graph)
        _refuse_other_ranks(graph, result)
        plan = LayoutPlan(graph, result.refuse, partial(self.takes, result))
        changed = [t for node in graph.nodes for t in node.outputs if plan.is_last(t)]
        if not changed:
            return result
        writer = _Writer(graph, plan)
        for node in list(graph.nodes):
            writer.rewrite(node)
        result.rewritten += len(changed)
        remove_dead_nodes(graph)
        sort_nodes(graph)
        fold_views(graph)
        return result


def _wrap_bare_nodes(graph: gs.Graph) -> int:
    """Make bare anchors and element-wise nodes operators (there are some when fusion is skipped)."""
    bare = [node for node in graph.nodes if is_anchor(node) or is_elementwise(node)]
    for node in bare:
        make_call(graph, [node], node.outputs[0])
    if bare:
        sort_nodes(graph)
    return len(bare)


def _refuse_other_ranks(graph: gs.Graph, result: PassResult) -> None:
    for node in graph.nodes:
        anchor = body_anchor(called(graph, node)) if is_call(node) else None
        if anchor is None or not is_op(anchor, *SPATIAL):
            continue
        if rank(anchor.inputs[0]) not in RANKS:
            result.refuse(
                node,
                f"{anchor.op} works on rank {rank(anchor.inputs[0])}; only 3 and 4 are laid out",
            )


class _Writer:
    """Rewrites the nodes of one graph in order, after the plan."""

    def __init__(self, graph: gs.Graph, plan: LayoutPlan) -> None:
        self._graph = graph
        self._plan = plan
        self._editor = GraphEditor(graph)
        self._stored: dict[int, gs.Tensor] = {}

    def rewrite(self, node: gs.Node) -> None:
        """Make ``node`` read what is stored, and write what the plan says."""
        last = any(self._plan.is_last(tensor) for tensor in node.outputs)
        if is_call(node):
            self._rewrite_call(node, last=last)
        elif last and not is_op(node, "Transpose", "Reshape", "Flatten", "Squeeze", "Unsqueeze"):
            self._rewrite_follower(node)
        elif last:
            self._store(node)
        # All others read the channels-first copy that `_store` left under the old tensor.

    def _rewrite_call(self, node: gs.Node, *, last: bool) -> None:
        function = called(self._graph, node)
        for index, tensor in enumerate(node.inputs):
            if self._plan.is_last(tensor):
                _transpose_input(function, index)
        if last:
            _transpose_output(function)
        node.inputs = [self._stored.get(id(tensor), tensor) for tensor in node.inputs]
        if last:
            self._store(node, transposed=True)

    def _rewrite_follower(self, node: gs.Node) -> None:
        dimensions = rank(node.inputs[0]) or 0
        data = len(node.inputs) if node.op == "Concat" else 1
        rename_axes(self._editor, node)
        moved = [self._channels_last(t, dimensions) for t in node.inputs[:data]]
        node.inputs = [*moved, *node.inputs[data:]]
        self._store(node, transposed=True)

    def _channels_last(self, tensor: gs.Tensor, dimensions: int) -> gs.Tensor:
        if id(tensor) in self._stored:
            return self._stored[id(tensor)]
        perm = to_last(dimensions)
        if isinstance(tensor, gs.Constant):
            name = self._editor.new_name(f"{tensor.name}_last")
            return moved_constant(name, tensor, lambda array: array.transpose(perm))
        shape = None if tensor.shape is None else [tensor.shape[axis] for axis in perm]
        return self._editor.add(
            "Transpose", [tensor], like=tensor, shape=shape, name=f"{tensor.name}_last",
            attrs={"perm": perm},
        )  # fmt: skip

    def _store(self, node: gs.Node, *, transposed: bool = False) -> None:
        """Give the outputs of ``node`` a channels-last tensor, and the old one as its copy.

        ``transposed``: the node itself writes channels last; otherwise a Transpose makes it.
        """
        outputs = list(node.outputs)
        stored = []
        for tensor in outputs:
            perm = to_last(len(tensor.shape))
            new = gs.Variable(
                self._editor.new_name(f"{tensor.name}_last"),
                tensor.dtype,
                [tensor.shape[axis] for axis in perm],
            )
            self._stored[id(tensor)] = new
            stored.append(new)
            name = self._editor.new_name(f"{tensor.name}_{'first' if transposed else 'last'}")
            if not transposed:
                perms = {"perm": perm}
                self._graph.nodes.append(gs.Node("Transpose", name, perms, [tensor], [new]))
        if not transposed:
            return
        node.outputs = stored
        for tensor, new in zip(outputs, stored, strict=True):
            name = self._editor.new_name(f"{tensor.name}_first")
            perms = {"perm": to_first(len(tensor.shape))}
            self._graph.nodes.append(gs.Node("Transpose", name, perms, [new], [tensor]))


def _transpose_input(function: gs.Function, index: int) -> None:
    """Let the body take input ``index`` channels last."""
    inner = function.inputs[index]
    outer = _outer(function, inner)
    perms = {"perm": to_first(len(inner.shape))}
    node = gs.Node("Transpose", f"{outer.name}_to_first", perms, [outer], [inner])
    function.nodes.insert(0, node)
    function.inputs[index] = outer


def _transpose_output(function: gs.Function) -> None:
    """Let the body give its output channels last."""
    inner = function.outputs[0]
    outer = _outer(function, inner)
    perms = {"perm": to_last(len(inner.shape))}
    node = gs.Node("Transpose", f"{outer.name}_from_first", perms, [inner], [outer])
    function.nodes.append(node)
    function.outputs[0] = outer


def _outer(function: gs.Function, inner: gs.Tensor) -> gs.Variable:
    """Make the channels-last tensor that stands for ``inner`` outside the body."""
    name = f"{inner.name}_last"
    taken = function.tensors()
    while name in taken:
        name += "_"
    return gs.Variable(name, inner.dtype, [inner.shape[axis] for axis in to_last(len(inner.shape))])
