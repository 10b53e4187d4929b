"""The float64 reference of a whole optimized graph, operator by operator.

Values are rounded to their types in memory between operators, at casts, and nowhere else; inside an
operator's body everything is float64, and a bound of the kernel's error goes along
(`wpk.checks.error_bounds`).
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import NamedTuple

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from wpk.checks.allowance import Allowance
from wpk.checks.body import BodyOutput, NodeBody
from wpk.checks.bounded import Floats, U
from wpk.checks.disturbed import DisturbedModel
from wpk.checks.evaluation import draws
from wpk.checks.float64_nodes import Array
from wpk.dtypes import DType, Precision, from_numpy
from wpk.graph_passes import RUNTIME_DOMAIN
from wpk.lowering.flat_graph import FlatGraph, FlatNode


@dataclass(frozen=True)
class Reference:
    """What one node of the optimized graph gives.

    Attributes:
        node: Its name.
        outputs: Its outputs by tensor name, before rounding to memory.
        tolerances: What a kernel's result may differ by, for each output that is floating point or
            has a tie that is undecided; any other must be equal.
    """

    node: str
    outputs: dict[str, Array]
    tolerances: dict[str, Allowance]


@dataclass(frozen=True)
class HandedReference(Reference):
    """What a group of nodes gives that ONNX Runtime executes.

    Attributes:
        model: The nodes in float64, on the values that they are given.
        alone: Why nothing but ONNX Runtime executes some of the nodes, by their operators.
    """

    model: DisturbedModel
    alone: Mapping[str, str]


class _Given(NamedTuple):
    """What the body of a node is given.

    Attributes:
        arrays: One for each input; None where an optional one is missing.
        weights: Places of the inputs that are constants.
        names: The outputs that have one.
        dtypes: Their types in memory.
    """

    arrays: list[Array | None]
    weights: list[int]
    names: list[str]
    dtypes: list[DType]


class GraphReference:
    """Evaluates an optimized graph on inputs, one node at a time."""

    def __init__(self, graph: gs.Graph, precision: Precision) -> None:
        """Prepare.

        Args:
            graph: The optimized graph, with the functions that its nodes call.
            precision: The precision that was asked for; says how fp32 products round.
        """
        exporter, tensors = gs.exporters.onnx_exporter, graph.tensors()
        functions = [exporter.OnnxExporter.export_function(each) for each in graph.functions]
        self._precision = precision
        self._nodes = [exporter.OnnxExporter.export_node(node) for node in graph.nodes]
        self._functions = {(f.domain, f.name): f for f in functions}
        self._opsets = {o.domain: o.version for o in exporter.update_import_domains(graph)}
        self._constants = {
            name: tensor.values
            for name, tensor in tensors.items()
            if isinstance(tensor, gs.Constant)
        }
        self._dtypes = {name: _dtype(tensor) for name, tensor in tensors.items()}

    def run(self, inputs: Mapping[str, Array], memory: dict[str, Array]) -> Iterator[Reference]:
        """Yield the reference of each node in order.

        Args:
            inputs: The model's inputs.
            memory: Filled with every tensor as it lies in memory, rounded; at each yield it holds
                the node's inputs and outputs.
        """
        for node in self.begin(inputs, memory):
            yield self.of(node, memory)

    def begin(
        self,
        inputs: Mapping[str, Array],
        memory: dict[str, Array],
        wanted: Collection[str] | None = None,
    ) -> list[onnx.NodeProto]:
        """Return the nodes to be evaluated, each by `of` or by `evaluate`, in this order.

        Args:
            inputs: The model's inputs.
            memory: Filled with these and with the constants.
            wanted: Names of the nodes and tensors that are asked for; all by default. Of the other nodes
                only those are returned that make what these read and ``memory`` does not hold yet, in the same
                type.
        """
        memory.update(self._constants)
        memory.update(inputs)
        return self._nodes if wanted is None else self._needed(wanted, memory)

    def of(self, node: onnx.NodeProto, memory: dict[str, Array]) -> Reference:
        """Return the reference of a node.

        Args:
            node: The node.
            memory: Holds its inputs; filled with its outputs.
        """
        function = self._function(node)
        if function is not None and node.domain == RUNTIME_DOMAIN:
            return self._handed(node, function, memory)
        arrays, weights, names, dtypes = self._given(node, memory)
        body = NodeBody(node, function, self._opsets)
        asked = arrays, weights, self._multiply_roundoff(arrays), dtypes
        least = body.at_least(*asked)
        results = body(*asked) if least is None else least
        whole = cache(lambda: body(*asked))
        outputs, tolerances = dict(zip(names, results, strict=True)), dict[str, Allowance]()
        for place, (dtype, (name, each)) in enumerate(zip(dtypes, outputs.items(), strict=True)):
            if least is not None:
                tolerances[name] = Allowance(each.tolerance, partial(_tolerance, whole, place))
            elif dtype.is_float or each.tolerance.any():
                tolerances[name] = Allowance.known(each.tolerance)
        memory.update({name: each.memory for name, each in outputs.items()})
        return Reference(node.name, {n: each.value for n, each in outputs.items()}, tolerances)

    def evaluate(self, node: onnx.NodeProto, memory: dict[str, Array]) -> None:
        """Compute the outputs of a node that nobody judges: memory is the same behind it as behind `of`.

        Args:
            node: The node.
            memory: Holds its inputs; filled with its outputs.
        """
        function = self._function(node)
        if function is not None and node.domain == RUNTIME_DOMAIN:
            self._handed(node, function, memory)
            return
        arrays, weights, names, dtypes = self._given(node, memory)
        stored = NodeBody(node, function, self._opsets).in_memory(arrays, weights, dtypes)
        memory.update(zip(names, stored, strict=True))

    def _function(self, node: onnx.NodeProto) -> onnx.FunctionProto | None:
        """The function that a node calls, if any."""
        return self._functions.get((node.domain, node.op_type))

    def _given(self, node: onnx.NodeProto, memory: Mapping[str, Array]) -> _Given:
        names = [name for name in node.output if name]
        return _Given(
            [memory[name] if name else None for name in node.input],
            [place for place, name in enumerate(node.input) if name in self._constants],
            names,
            [self._dtypes.get(name) or DType.FP32 for name in names],
        )

    def _needed(self, wanted: Collection[str], memory: Mapping[str, Array]) -> list[onnx.NodeProto]:
        """The nodes that are wanted, and those that these read from and whose outputs are not known."""
        known = {name for name, array in memory.items() if self._holds(name, array)}
        asked, needed = {*wanted} - known, list[onnx.NodeProto]()
        for node in reversed(self._nodes):
            if node.name in wanted or not asked.isdisjoint(node.output):
                needed.append(node)
                asked.update(name for name in node.input if name not in known)
        return needed[::-1]

    def _holds(self, name: str, array: Array) -> bool:
        """Whether an array is of a tensor's type; one that the graph lacks is nobody's input."""
        dtype = self._dtypes.get(name)
        return dtype is None or from_numpy(array.dtype) is dtype

    def _handed(
        self, node: onnx.NodeProto, function: onnx.FunctionProto, memory: dict[str, Array]
    ) -> HandedReference:
        """The reference of nodes that ONNX Runtime executes; their tensors have the graph's own names."""
        given = {name: memory[name] for name in node.input}
        constants = {name: array for name, array in given.items() if name in self._constants}
        own = tuple(FlatNode(each, node.name, tuple(each.output)) for each in function.node)
        opset = next(each.version for each in function.opset_import if each.domain == "")
        graph = FlatGraph(own, constants, tuple(node.input), tuple(node.output), opset)
        inputs = {name: array for name, array in given.items() if name not in constants}
        drawn = {n.op_type: "its numbers are drawn" for n in function.node if draws(n)}
        model = DisturbedModel(graph, self._precision, inputs)
        outputs = model.outputs()
        for name, value in outputs.items():
            dtype = self._dtypes.get(name)
            memory[name] = value if dtype is None else value.astype(dtype.numpy)
        return HandedReference(node.name, outputs, {}, model, {**drawn, **model.by_runtime})

    def _multiply_roundoff(self, arrays: list[Array | None]) -> float:
        """u_mul: nothing where operands lie in memory as 16 bits, or 8, for their products are exact.

        A body that converts an fp32 input first carries that rounding as the Cast's error. Of tf32's
        products one operand may have 16 bits, and the other round.
        """
        types = {from_numpy(array.dtype) for array in arrays if array is not None}
        if self._precision is Precision.TF32 and DType.FP32 in types:
            return self._precision.multiply_roundoff
        exact = {DType.FP16, DType.BF16}
        if self._precision is not Precision.FP32:
            exact |= {DType.FP8_E4M3, DType.FP8_E5M2}
        return 0.0 if types & exact else U


def _tolerance(results: Callable[[], Sequence[BodyOutput]], place: int) -> Floats:
    return results()[place].tolerance


def _dtype(tensor: gs.Tensor) -> DType | None:
    dtype = tensor.dtype
    if isinstance(dtype, int):
        dtype = onnx.helper.tensor_dtype_to_np_dtype(dtype)
    return None if dtype is None else from_numpy(np.dtype(dtype))
