"""Lower an optimized graph to operators over values in memory."""

import math
from dataclasses import replace

import numpy as np
import onnx_graphsurgeon as gs

from wpk.dtypes import DType, Precision
from wpk.errors import UnsupportedError
from wpk.extent import Extent
from wpk.lowering import view_ops
from wpk.lowering.anchors.base import Lowered
from wpk.lowering.anchors.registry import RULES
from wpk.lowering.body import read_body
from wpk.lowering.context import Context, constant_view
from wpk.lowering.elementwise import lower_elementwise
from wpk.lowering.memory_map import MemoryMap
from wpk.lowering.partition import ONNX_DOMAINS, body_of, element_type, functions_of
from wpk.lowering.placement import ALIGNMENT, place_concatenations
from wpk.lowering.program import Operator, Program
from wpk.lowering.shape_values import expanded, shape_only_nodes
from wpk.lowering.symbols import Computed, RefusedError, of_view
from wpk.lowering.views import NotAViewError, View, contiguous_strides

_ALIASES = ("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Slice")


def lower(graph: gs.Graph, precision: Precision, free: dict[str, int]) -> Program:
    """Lower the optimized graph.

    Args:
        graph: Output of the graph passes: typed, fused, laid out, with shapes.
        precision: The precision asked for.
        free: Tuned values of the free dimensions, by name.

    Raises:
        UnsupportedError: Some nodes cannot be lowered; the message lists all of them.
    """
    plain: set[str] = set()
    while True:
        lowering = _Lowering(graph, precision, free, frozenset(plain))
        try:
            return lowering.program()
        except NotAViewError as obstacle:
            if obstacle.source in plain:
                raise RefusedError(str(obstacle)) from obstacle
            plain.add(obstacle.source)


class _Lowering:
    """One attempt, with the tensors in ``plain`` laid out row-major in buffers of their own."""

    def __init__(
        self, graph: gs.Graph, precision: Precision, free: dict[str, int], plain: frozenset[str]
    ) -> None:
        self.graph, self.free, self.plain = graph, free, plain
        self.functions = functions_of(graph)
        self.context = Context(precision)
        self.views: dict[str, View] = {}
        self.operators: list[Operator] = []
        self.refused: list[tuple[str, str, str]] = []
        movable = _movable(graph, plain)
        slots = place_concatenations(graph, movable)
        self.memory = MemoryMap(slots, self.padded(movable - set(slots)), _inner_shapes(graph))

    def padded(self, movable: set[str]) -> frozenset[str]:
        """Channels-last tensors that a convolution reads and whose rows do not align."""
        names = set()
        for tensor in self.graph.tensors().values():
            if tensor.name not in movable or not tensor.shape or len(tensor.shape) < 3:
                continue
            if not any(self.is_convolution(node) for node in tensor.outputs):
                continue
            dtype = element_type(tensor)
            if dtype.is_float and tensor.shape[-1] * dtype.bytes % ALIGNMENT:
                names.add(tensor.name)
        return frozenset(names)

    def is_convolution(self, node: gs.Node) -> bool:
        function = self.functions.get(node.op)
        nodes = function.nodes if function is not None else [node]
        return any(n.op == "Conv" and n.attrs.get("group", 1) == 1 for n in nodes)

    def program(self) -> Program:
        for tensor in self.graph.inputs:
            self.enter(tensor)
        shapes_only = shape_only_nodes(self.graph)
        for node in self.graph.nodes:
            if node.name in shapes_only:
                continue
            try:
                self.lower_node(node)
            except RefusedError as refusal:
                self.refused.append((node.name, node.op, str(refusal)))
                self.pretend(node)
        if self.refused:
            raise _unsupported(self.refused)
        for tensor in self.graph.outputs:
            self.leave(tensor)
        used = {name for operator in self.operators for name in operator.inputs}
        values = self.memory.values
        return Program(
            inputs=tuple(t.name for t in self.graph.inputs),
            outputs=tuple(t.name for t in self.graph.outputs),
            values=values,
            constants={n: v for n, v in self.context.constants.items() if n in used},
            buffers=self.memory.buffers,
            operators=tuple(self.operators),
            free=self.free,
        )

    def enter(self, tensor: gs.Tensor) -> None:
        """Place a model's input."""
        first, *rest = tensor.shape or (1,)
        leading = Extent(self.free[first], first) if isinstance(first, str) else Extent(int(first))
        shape = (leading.value, *(int(n) for n in rest))
        self.views[tensor.name] = self.memory.home(
            tensor.name, element_type(tensor), shape, leading
        )
        if not tensor.shape:
            self.scalar(tensor.name)

    def scalar(self, name: str) -> None:
        self.memory.values[name] = replace(self.memory.values[name], logical_shape=())

    def leave(self, tensor: gs.Tensor) -> None:
        """Make sure that a model's output is contiguous and lies in memory that is no input's."""
        view = self.view(tensor)
        logical = () if tensor.shape is not None and not list(tensor.shape) else view.shape
        owned = view.source in self.memory.values
        base = self.memory.values[view.source].buffer if owned else ""
        contiguous = view.strides == contiguous_strides(view.shape) and view.dtype is element_type(
            tensor
        )
        if not owned or not contiguous or base in {t.name for t in self.graph.inputs}:
            self.copy(view, f"{tensor.name}", view.shape, "output of the model")
        elif view.source != tensor.name or view.offset:
            self.memory.alias(tensor.name, view, logical)
        if logical == ():
            self.scalar(tensor.name)

    def view(self, tensor: gs.Tensor) -> View:
        if tensor.name not in self.views:
            if not isinstance(tensor, gs.Constant):
                raise RefusedError(f"tensor {tensor.name!r} is made by nothing that is supported")
            self.views[tensor.name] = self.context.added(tensor.name, np.asarray(tensor.values))
        return self.views[tensor.name]

    def lower_node(self, node: gs.Node) -> None:
        if node.domain in ONNX_DOMAINS:
            if node.op == "Concat":
                return self.concat(node)
            if node.op == "Split":
                return self.split(node)
            if node.op == "Expand" and self.context.values(self.view(node.inputs[0])) is not None:
                view = self.view(node.inputs[0])
                self.views[node.outputs[0].name] = expanded(
                    view, node.outputs[0].shape, self.free
                )
                return None
            if node.op in _ALIASES and self.aliased(node):
                return None
            if node.op == "Gather" and self.picked(node):
                return None
        return self.body(node)

    def body(self, node: gs.Node) -> None:
        body = body_of(node, self.functions)
        inputs = {
            inner: self.view(outer)
            for inner, outer in zip(body.inputs, node.inputs, strict=False)
            if inner and outer.name
        }
        shapes = {op: rule.shape for op, rule in RULES.items()}
        result = read_body(body, inputs, self.context, shapes)
        output = node.outputs[0]
        home = self.memory.home(output.name, element_type(output), result.shape, result.leading)
        self.views[output.name] = home
        y = result.pulled_back(home)
        if result.anchor is None:
            lowered = lower_elementwise(result, y)
        else:
            lowered = RULES[result.anchor.node.op].lower(result, y, self.context)
        self.emit(node.name, body.onnx_nodes, lowered, output.name, node.name)

    def emit(
        self,
        name: str,
        nodes: tuple[str, ...],
        lowered: Lowered,
        output: str,
        call: str,
        note: str = "",
    ) -> None:
        inputs = tuple(self.source(view) for view in lowered.inputs)
        self.operators.append(Operator(name, nodes, lowered.problem, inputs, (output,), call, note))

    def source(self, view: View) -> str:
        """Name of the value or constant that starts where the view starts."""
        if view.source in self.memory.values:
            return self.memory.at(view)
        if view.offset:
            rest = self.context.constants[view.source].reshape(-1)[view.offset :]
            return self.context.added(f"{view.source}@{view.offset}", rest).source
        return view.source

    def copy(self, view: View, name: str, shape: tuple[int, ...], note: str) -> None:
        """An explicit copy of a view into the home of tensor ``name``."""
        home = self.memory.home(name, view.dtype, shape, view.leading)
        self.views[name] = home
        self.copy_to(view, home, name, note)

    def copy_to(self, view: View, home: View, name: str, note: str) -> None:
        computed: Computed = of_view(view)
        operator = f"copy_{name}"
        taken = sum(o.name.startswith(operator) for o in self.operators)
        self.emit(
            f"{operator}_{taken}" if taken else operator,
            (),
            lower_elementwise(computed, home),
            self.memory.at(home),
            "",
            note,
        )

    def aliased(self, node: gs.Node) -> bool:
        """A node that is nothing but another view of its input; False where it needs a copy."""
        parameters = [
            None if not t.name else self.context.values(self.view(t)) for t in node.inputs[1:]
        ]
        source = self.view(node.inputs[0])
        try:
            view = view_ops.read(node, source.shape, parameters)(source)
        except NotAViewError as obstacle:
            if obstacle.source not in self.plain and obstacle.source in self.memory.slots:
                raise
            return False
        if node.op == "Slice" and view.tensor().alignment < min(16, source.tensor().alignment):
            return False
        self.views[node.outputs[0].name] = view
        return True

    def picked(self, node: gs.Node) -> bool:
        """Gather of one constant index: a slice without its axis."""
        index = (
            self.context.values(self.view(node.inputs[1]))
            if isinstance(node.inputs[1], gs.Constant)
            else None
        )
        source = self.view(node.inputs[0])
        axis = int(node.attrs.get("axis", 0)) % len(source.shape)
        scalar = list(node.inputs[1].shape or []) == []
        if index is None or index.size != 1 or not scalar or (axis == 0 and source.leading.free):
            return False
        at = int(index.reshape(-1)[0]) % source.shape[axis]
        part = source.sliced(axis, at, 1)
        rest = (*source.shape[:axis], *source.shape[axis + 1 :]) or (1,)
        self.views[node.outputs[0].name] = part.reshaped(rest)
        return True

    def split(self, node: gs.Node) -> None:
        source = self.view(node.inputs[0])
        axis = int(node.attrs.get("axis", 0)) % len(source.shape)
        start = 0
        for tensor, count in zip(node.outputs, self.parts(node, source.shape[axis]), strict=True):
            part = source.sliced(axis, start, count)
            start += count
            if part.tensor().alignment >= min(16, source.tensor().alignment):
                self.views[tensor.name] = part
            else:
                self.copy(part, tensor.name, part.shape, "a part of a split that does not align")

    def parts(self, node: gs.Node, size: int) -> list[int]:
        given = node.attrs.get("split")
        if given is None and len(node.inputs) > 1 and node.inputs[1].name:
            given = self.context.values(self.view(node.inputs[1]))
            if given is None:
                raise RefusedError("Split whose sizes are not constant")
        if given is not None:
            return [int(n) for n in given]
        step = math.ceil(size / len(node.outputs))
        return [min(step, size - i * step) for i in range(len(node.outputs))]

    def concat(self, node: gs.Node) -> None:
        """Inputs that do not already lie in the output are copied there."""
        parts = [self.view(t) for t in node.inputs]
        output = node.outputs[0]
        axis = int(node.attrs["axis"]) % len(parts[0].shape)
        total = sum(part.shape[axis] for part in parts)
        first = parts[0]
        shape = (*first.shape[:axis], total, *first.shape[axis + 1 :])
        leading = next((p.leading for p in parts if p.leading.free), parts[0].leading)
        if axis == 0 and leading.free:
            raise RefusedError("Concat along the free dimension")
        leading = Extent(shape[0]) if axis == 0 else leading
        home = self.memory.home(output.name, element_type(output), shape, leading)
        self.views[output.name] = home
        start = 0
        for tensor, part in zip(node.inputs, parts, strict=True):
            place = home.sliced(axis, start, part.shape[axis])
            start += part.shape[axis]
            if not self.lies_at(part, place):
                self.copy_to(
                    part, place, f"{tensor.name}_to_{output.name}", "a part of a concatenation"
                )

    def lies_at(self, part: View, place: View) -> bool:
        values = self.memory.values
        if part.source not in values:
            return False
        a, b = values[part.source], values[place.source]
        where = [v.offset + w.offset * v.dtype.bytes for v, w in ((a, part), (b, place))]
        return a.buffer == b.buffer and where[0] == where[1] and part.strides == place.strides

    def pretend(self, node: gs.Node) -> None:
        """Give a refused node's outputs a place, so that the nodes after it are looked at too."""
        for tensor in node.outputs:
            if tensor.shape is None or tensor.name in self.views or not tensor.name:
                continue
            sizes = [self.free.get(n, 1) if isinstance(n, str) else n or 1 for n in tensor.shape]
            try:
                dtype = element_type(tensor)
            except RefusedError:
                dtype = DType.FP32
            shape = tuple(sizes) or (1,)
            self.views[tensor.name] = constant_view(
                tensor.name, np.broadcast_to(np.zeros((), dtype.numpy), shape)
            )


def _movable(graph: gs.Graph, plain: frozenset[str]) -> set[str]:
    """Tensors written by an operator that may lie anywhere."""
    fixed = {t.name for t in (*graph.inputs, *graph.outputs)} | plain
    names = set()
    for node in graph.nodes:
        if node.domain in ONNX_DOMAINS and (node.op in _ALIASES or node.op == "Split"):
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
