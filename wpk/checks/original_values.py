"""The values of a model's tensors in float64, as the original graph defines them, on one input.

They are computed when they are asked for. Nothing is rounded: casts to 16 bits and values in memory
keep float64.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import takewhile

import numpy as np
import onnx

from wpk.checks.bounded import (
    FLOAT64,
    KERNELS,
    Arithmetic,
    Ball,
    Call,
    Floats,
    float_type,
    rounding,
)
from wpk.checks.error_bounds import bound_error
from wpk.checks.evaluation import Evaluation, Opinions
from wpk.checks.float64_nodes import Array, NodeEvaluator, widened
from wpk.checks.runtime_nodes import RuntimeEvaluator
from wpk.checks.samples.few import FewSamples
from wpk.checks.stretches import Stretch, is_element_wise, of_elements
from wpk.dtypes import DType, is_float
from wpk.file_arrays import in_file
from wpk.lowering.flat_graph import FlatGraph, FlatNode, read_names

ALGEBRA = replace(FLOAT64, roundoff=64 * FLOAT64.roundoff, other_forms=True)
"""Float64 where two graphs of one function compute it in different ways: an operation of the original
may stand for some that another order or form of it needs instead."""


class OriginalValues:
    """Evaluates a graph lazily, and says what its algebra lets its values differ by."""

    def __init__(
        self,
        graph: FlatGraph,
        inputs: Mapping[str, Array],
        opinions: Opinions | None,
        few: FewSamples | None = None,
    ) -> None:
        """Prepare.

        Args:
            graph: The original.
            inputs: Its inputs.
            opinions: Told of every node that is evaluated.
            few: Follows the few samples that inputs have, if they have not all.
        """
        self._graph = graph
        self._types = constant_types(graph)
        self._values: dict[str, Array] = {name: widened(a) for name, a in inputs.items()}
        self._nodes = Evaluation(graph.opset, opinions, few)
        read = (set(read_names(node.proto)) for node in graph.nodes)
        self._readers = Counter(name for names in read for name in names if name)
        self._computed: set[int] = set()
        self._unread: set[str] = set()
        self._settled: set[str] = set()

    def value(self, name: str) -> Array:
        """Return the tensor in float64; integers and booleans as they are."""
        waiting = [name]
        while waiting:
            missing = self._missing(waiting[-1])
            if missing:
                waiting += missing
            else:
                self._compute(waiting.pop())
        return self._known(name)

    def settle(self, name: str, value: Array) -> None:
        """Go on with another value of a tensor, which stands for it from now on."""
        self._values[name] = in_file(widened(value))
        self._settled.add(name)

    def release(self, is_needed: Callable[[str], bool]) -> None:
        """Let go of the memory of tensors that no node reads which is still to be computed.

        One that is asked for all the same is computed again.

        Args:
            is_needed: Tells of a tensor whether it is going to be asked for.
        """
        kept = {name for name in self._unread if is_needed(name)}
        for name in self._unread - kept:
            del self._values[name]
        self._unread = kept

    def region(self, name: str, cut: Collection[str]) -> list[FlatNode]:
        """Return the nodes between a tensor and those of ``cut`` before it, in order."""
        found, waiting = set[int](), [name]
        while waiting:
            index = self._graph.makers.get(waiting.pop())
            if index is None or index in found:
                continue
            found.add(index)
            inputs = read_names(self._graph.nodes[index].proto)
            waiting += [each for each in inputs if each and each not in cut]
        return [self._graph.nodes[index] for index in sorted(found)]

    def allowed(self, name: str, arithmetic: Arithmetic, cut: Collection[str]) -> Floats:
        """Return by how much a tensor may differ where its region is computed in another way.

        What the region computes from constants alone a pass may have computed, in the model's own
        types. Scalars and attributes of the region are known as well as fp32 holds them: a pattern with the
        square root of two in fp32 is the function with the square root of two.

        Args:
            name: The tensor.
            arithmetic: The arithmetic in which it is computed.
            cut: Tensors whose values are given, where the region begins.
        """
        known: dict[str, Ball] = {}
        nodes = [node.proto for node in self.region(name, cut)]
        first = 0
        while first < len(nodes):
            found = self._stretch(nodes, first, known)
            if found is None:
                self._step(nodes[first], arithmetic, known)
                first += 1
                continue
            some, behind = nodes[first : found.behind], nodes[found.behind :]
            read = {name, *(each for node in behind for each in node.input)}
            kept = [each for node in some for each in node.output if each in read]
            used = {each for node in some for each in node.input if each}
            made = {each for node in some for each in node.output}
            operands = {each: self._bounded(each, known) for each in used - made}
            work = partial(self._of_part, some, kept, arithmetic)
            known.update(zip(kept, found.evaluated(operands, work), strict=True))
            first = found.behind
        last = known[name]
        return np.zeros(last.value.shape) if last.error is None else last.error

    def _stretch(
        self, nodes: Sequence[onnx.NodeProto], first: int, known: Mapping[str, Ball]
    ) -> Stretch | None:
        """Element-wise nodes that are large enough to be bounded part by part; None where the first is not one."""
        some = list(takewhile(self._is_plain, nodes[first:]))
        made = {name for node in some for name in node.output}
        used = {name for node in some for name in node.input if name} - made
        if not some:
            return None
        operands = {name: self._bounded(name, known) for name in used}
        repeated = (
            name
            for name in used
            if name not in self._graph.makers and operands[name].value.size > 1
        )
        if self._nodes.few is not None and any(repeated):
            return None  # it may have numbers for each sample
        found = of_elements(some, 0, operands)
        return None if found is None else replace(found, behind=first + found.behind)

    def _is_plain(self, node: onnx.NodeProto) -> bool:
        """Whether a node is element-wise, computed by the evaluator, and no constant of a type of its own."""
        own = not any(name in self._types for name in node.output)
        return (
            own and is_element_wise(node) and not isinstance(self._nodes.of(node), RuntimeEvaluator)
        )

    def _of_part(
        self,
        nodes: Sequence[onnx.NodeProto],
        kept: Sequence[str],
        arithmetic: Arithmetic,
        part: dict[str, Ball],
    ) -> list[Ball]:
        for node in nodes:
            self._bound(
                node, [part[name] if name else None for name in node.input], arithmetic, part
            )
        return [part[name] for name in kept]

    def _step(self, node: onnx.NodeProto, arithmetic: Arithmetic, known: dict[str, Ball]) -> None:
        """Evaluate a node with its bounds, whose inputs are known or are the graph's values."""
        inputs = [self._bounded(each, known) if each else None for each in read_names(node)]
        self._bound(node, self._of_few(node, inputs), arithmetic, known)

    def _bound(
        self,
        node: onnx.NodeProto,
        inputs: Sequence[Ball | None],
        arithmetic: Arithmetic,
        known: dict[str, Ball],
    ) -> None:
        evaluator = self._nodes.of(node)
        outputs = evaluator([None if each is None else each.value for each in inputs])
        made = [each for each in node.output if each]
        for place, (output, value) in enumerate(zip(made, outputs, strict=False)):
            dtype = self._types.get(output)
            used = arithmetic if dtype is None else KERNELS
            call = Call(evaluator, inputs, outputs, used.roundoff, used, place)
            known[output] = _constant(value, self._error(call), dtype)

    def _bounded(self, name: str, known: Mapping[str, Ball]) -> Ball:
        if name in known:
            return known[name]
        dtype = self._types.get(name) if name in self._graph.constants else None
        return _constant(self.value(name), None, dtype)

    def _of_few(self, node: onnx.NodeProto, inputs: Sequence[Ball | None]) -> Sequence[Ball | None]:
        """What a node reads for the few samples, where the inputs have not all."""
        few = self._nodes.few
        if few is None:
            return inputs
        found = list(inputs)
        way = few.way(node, [None if each is None else each.value for each in inputs])
        for place, change in way.changes.items():
            ball = inputs[place]
            if ball is not None:
                error = None if ball.error is None else np.asarray(change(ball.error), np.float64)
                found[place] = Ball(change(ball.value), error)
        return found

    def _known(self, name: str) -> Array:
        return self._values[name] if name in self._values else widened(self._graph.constants[name])

    def _missing(self, name: str) -> list[str]:
        """Return what must be computed before a tensor can be computed."""
        if name in self._values or name not in self._graph.makers:
            return []
        inputs = read_names(self._graph.nodes[self._graph.makers[name]].proto)
        return [each for each in inputs if each in self._graph.makers and each not in self._values]

    def _compute(self, name: str) -> None:
        if name in self._values or name not in self._graph.makers:
            return
        index = self._graph.makers[name]
        proto = self._graph.nodes[index].proto
        given = [self._known(each) if each else None for each in read_names(proto)]
        results = self._nodes.run(proto, given)
        for output, value in zip([n for n in proto.output if n], results, strict=False):
            self._values.setdefault(output, value)
        self._note_read(index)

    def _note_read(self, index: int) -> None:
        """Note that a node has read its inputs, and which of them and of its outputs no other will read."""
        proto = self._graph.nodes[index].proto
        read = {name for name in read_names(proto) if name}
        if index not in self._computed:
            self._computed.add(index)
            self._readers.subtract(read)
        held = (name for name in (*read, *proto.output) if name in self._graph.makers)
        free = (name for name in held if name in self._values and name not in self._settled)
        self._unread.update(name for name in free if not self._readers[name])

    def _error(self, call: Call) -> Floats | None:
        """The error of a node's output, that of its attributes included."""
        error = bound_error(call)
        if not is_float(call.y.dtype) or isinstance(call.evaluate, RuntimeEvaluator):
            return error
        for attribute in call.node.attribute:
            change = _attribute_error(call, attribute.name, self._graph.opset)
            if change is not None:
                error = change if error is None else error + change
        return error


def constant_types(graph: FlatGraph) -> dict[str, DType]:
    """Return the floating point types of all tensors that depend on no input."""
    fixed = set(graph.constants)
    known = {name: float_type(array.dtype) for name, array in graph.constants.items()}
    types = {name: dtype for name, dtype in known.items() if dtype is not None}
    for node in (each.proto for each in graph.nodes):
        by_shape = node.op_type in ("Shape", "Size")
        if not by_shape and not all(name in fixed for name in read_names(node) if name):
            continue
        fixed.update(node.output)
        found = _made_type(node) or next((types[n] for n in node.input if n in types), None)
        if found is not None:
            types.update(dict.fromkeys(node.output, found))
    return types


def _made_type(node: onnx.NodeProto) -> DType | None:
    """The type that a node without floating point inputs makes, as far as it says so."""
    made = [a.t.data_type if a.name.startswith("value") else a.i for a in node.attribute
            if a.name in ("to", "dtype", "value")]  # fmt: skip
    try:
        return float_type(np.dtype(onnx.helper.tensor_dtype_to_np_dtype(made[0])))
    except (IndexError, KeyError, TypeError):
        return None


def _constant(value: Array, error: Floats | None, dtype: DType | None) -> Ball:
    """A value with the rounding of a constant's type: of a computed one, and of any scalar."""
    if dtype is None or not is_float(value.dtype) or (error is None and value.size > 1):
        return Ball(value, error)
    own = rounding(value, dtype if error is not None else DType.FP32)
    return Ball(value, own if error is None else error + own)


def _attribute_error(call: Call, name: str, opset: int) -> Floats | None:
    """What rounding an attribute to fp32 may have changed; None for what is no floating point."""
    node = onnx.NodeProto()
    node.CopyFrom(call.node)
    attribute = next(each for each in node.attribute if each.name == name)
    if attribute.type != onnx.AttributeProto.FLOAT or name in ("epsilon", "momentum"):
        return None
    attribute.f = float(np.nextafter(np.float32(attribute.f), np.float32(np.inf)))
    moved = NodeEvaluator(node, {"": opset})([None if x is None else x.value for x in call.inputs])
    change = np.abs(np.asarray(moved[call.place], np.float64) - np.asarray(call.y, np.float64))
    return np.where(np.isfinite(change), change, 0.0)
