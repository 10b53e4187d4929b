"""A model in float64, disturbed at every node by as much as an honest implementation may round there.

How far roundings move a model's outputs is not known beforehand: a deep network may amplify them, and
in front of a comparison or of Floor the least of them decides. So the model as it was loaded is
executed several times, what each node gives moved by a drawn part of what it may be rounded by, and
the outputs show it. What was moved is rounded to its type: only so are two numbers equal that an
implementation makes equal. Nothing of that comes from a rewritten graph or an engine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import TensorProto

from wpk.checks.bounded import Floats, float_type
from wpk.checks.centred import size_before_the_difference
from wpk.checks.doubles import double_names
from wpk.checks.evaluation import Evaluation
from wpk.checks.float64_nodes import Array, widened
from wpk.dtypes import DType, Precision, is_float
from wpk.lowering.flat_graph import FlatGraph, read_names
from wpk.operators import OPERATORS, OperatorKind, Roundoff, names, of_kind

_SUMS = names(lambda row: Roundoff.TERMS in row.roundoff)
_WINDOWS = ("BlackmanWindow", "HammingWindow", "HannWindow")
"""Sums of cosines, which cancel at the ends."""

_AROUND_ONE = {*names(lambda row: Roundoff.ONE in row.roundoff), *_WINDOWS}
_EXACT = names(lambda row: row.roundoff is Roundoff.NONE)
_SHAPES = of_kind(OperatorKind.SHAPE)
_FP32, _FP64 = DType.FP32.unit_roundoff, DType.FP64.unit_roundoff
_SMALLEST = {DType.FP16: 2.0**-24, DType.BF16: 2.0**-133}
_IN_A_ROW = 2.0
"""Roundings of fp32 or fp64 that one node may make, one after the other; 16 bits are rounded to once."""


@dataclass(frozen=True)
class Noise:
    """How much is drawn.

    Attributes:
        strength: The size of disturbances, in roundings of the arithmetic.
        seed: The seed of what is drawn.
    """

    strength: float
    seed: int


class DisturbedModel:
    """The model that was loaded, to be executed on one input."""

    def __init__(self, graph: FlatGraph, precision: Precision, inputs: Mapping[str, Array]) -> None:
        """Prepare.

        Args:
            graph: The model before any pass.
            precision: The precision in which an engine computes.
            inputs: The inputs by name, in the model's types.
        """
        self._graph, self._precision = graph, precision
        self._given = {**graph.constants, **inputs}
        self._nodes = Evaluation(graph.opset, None)
        self._types = _types(graph, self._given)
        given = {name: array.dtype for name, array in self._given.items()}
        self._doubles = double_names([each.proto for each in graph.nodes], given)
        self._kept = parameters(graph)
        last = {name: i for i, node in enumerate(graph.nodes) for name in _names(node.proto)}
        self._over: dict[int, list[str]] = {}
        for name in last.keys() - set(graph.outputs):
            self._over.setdefault(last[name], []).append(name)

    @property
    def by_runtime(self) -> Mapping[str, str]:
        """Why ONNX Runtime evaluated kinds of nodes, which onnx's reference does not execute."""
        return self._nodes.by_runtime

    def outputs(self, noise: Noise | None = None) -> dict[str, Array]:
        """Return the model's outputs; floating point ones in float64.

        Args:
            noise: What to disturb it by; nothing where it is None.
        """
        draw = None if noise is None else _Draw(self._precision, noise)
        known = {name: widened(array) for name, array in self._given.items()}
        if draw is not None:
            for name in known.keys() - self._kept:
                known[name] = draw.stored(known[name], self._type_of(name))
        for index, node in enumerate(self._graph.nodes):
            known |= self._made(node.proto, known, draw)
            for name in self._over.get(index, ()):
                del known[name]  # nobody reads it any more
        return {name: known[name] for name in self._graph.outputs}

    def _made(
        self, node: onnx.NodeProto, known: Mapping[str, Array], draw: _Draw | None
    ) -> dict[str, Array]:
        names = read_names(node)
        given = [known[name] if name else None for name in names]
        # What no kernel computes rounds inside, nobody knows where: as if its inputs were rounded.
        if draw is not None and (node.op_type in _SUMS or node.op_type not in OPERATORS):
            given = [
                array
                if array is None or name in self._kept
                else draw.factor(array, self._type_of(name))
                for name, array in zip(names, given, strict=True)
            ]
        made = [each for each in node.output if each]
        values = dict(zip(made, self._nodes.run(node, given), strict=False))
        if draw is not None:
            size = size_before_the_difference(node, given)
            if size is not None:
                values[made[0]] = draw.difference(values[made[0]], size, self._type_of(made[0]))
            for name in values.keys() - self._kept:
                values[name] = draw.result(values[name], node.op_type, self._type_of(name))
        return values

    def _type_of(self, name: str) -> DType:
        """Return the type of what is in a tensor; nothing is held to more than fp32, but what is fp64."""
        return DType.FP64 if name in self._doubles else self._types.get(name, DType.FP32)


class _Draw:
    """Draws roundings."""

    def __init__(self, precision: Precision, noise: Noise) -> None:
        self._rng = np.random.default_rng(noise.seed)
        self._strength = noise.strength
        self._type = precision.storage
        self._stored = precision.storage.unit_roundoff
        self._factor = max(self._stored, precision.multiply_roundoff)
        self._smallest = _SMALLEST[DType.FP16] if precision is Precision.FP16 else 0.0

    def stored(self, value: Array, dtype: DType) -> Array:
        """Return an input or a constant as an engine keeps it; fp32 is not rounded again."""
        if dtype is DType.FP64 or max(self._stored, dtype.unit_roundoff) <= _FP32:
            return value
        return self._moved(value, self._stored, self._smallest, self._type)

    def factor(self, value: Array, dtype: DType) -> Array:
        """Disturb a factor of products, or a term of a sum."""
        if dtype is DType.FP64:
            return self._moved(value, self._in_a_row(_FP64), 0.0, dtype)
        return self._moved(value, self._in_a_row(self._factor), 0.0, self._type)

    def result(self, value: Array, op: str, dtype: DType) -> Array:
        """Disturb what a node gave."""
        if dtype is DType.FP64:
            own = 0.0 if op in _EXACT else self._in_a_row(_FP64)
            return self._moved(value, own, own if op in _AROUND_ONE else 0.0, dtype)
        size = max(self._in_a_row(self._stored), dtype.unit_roundoff)
        floor = size if op in _AROUND_ONE else 0.0
        if op in _EXACT and size <= _IN_A_ROW * _FP32:
            return value
        smallest = _SMALLEST.get(dtype, self._smallest)
        kept = max(self._type, dtype, key=lambda each: each.unit_roundoff)
        return self._moved(value, size, max(floor, smallest), kept)

    def difference(self, value: Array, size: Floats, dtype: DType) -> Array:
        """Disturb a result that is the difference of numbers of a given size, rounded to fp32 or fp64."""
        unit = _FP64 if dtype is DType.FP64 else _FP32
        drawn = self._rng.uniform(-self._strength, self._strength, value.shape)
        with np.errstate(all="ignore"):
            moved = np.add(value, drawn * (_IN_A_ROW * unit * size))
        return np.where(np.isfinite(moved), moved, value)

    def _in_a_row(self, roundoff: float) -> float:
        return roundoff * (_IN_A_ROW if roundoff <= _FP32 else 1.0)

    def _moved(self, value: Array, relative: float, absolute: float, dtype: DType) -> Array:
        if not is_float(value.dtype):
            return value
        exact = np.asarray(value, np.float64)
        drawn = self._rng.uniform(-self._strength, self._strength, value.shape)
        with np.errstate(all="ignore"):
            moved = exact + drawn * (relative * np.abs(exact) + absolute)
            rounded = moved.astype(dtype.numpy).astype(np.float64)
        moved = np.where(np.isfinite(rounded), rounded, moved)  # sums may be kept in wider types
        return np.where(np.isfinite(exact), moved, exact)


def parameters(graph: FlatGraph) -> frozenset[str]:
    """Tensors that say how nodes compute, and all that they are computed from: engines have them as they are."""
    found = set[str]()
    for node in (each.proto for each in reversed(graph.nodes)):
        row = OPERATORS.get(node.op_type)
        if row is not None and row.parameters is not None:
            found.update(node.input[row.parameters :])
        if node.op_type not in _SHAPES and not found.isdisjoint(node.output):
            found.update(read_names(node))
    return frozenset(found)


def _names(node: onnx.NodeProto) -> Iterator[str]:
    yield from (name for name in (*read_names(node), *node.output) if name)


def _types(graph: FlatGraph, given: Mapping[str, Array]) -> dict[str, DType]:
    """The floating point type of each tensor: of its first such input, or what a Cast says."""
    known = {name: float_type(array.dtype) for name, array in given.items()}
    types = {name: dtype for name, dtype in known.items() if dtype is not None}
    for node in graph.nodes:
        own = _cast(node.proto)
        if own is None:
            own = next((types[name] for name in read_names(node.proto) if name in types), None)
        if own is not None:
            types |= dict.fromkeys(node.proto.output, own)
    return types


def _cast(node: onnx.NodeProto) -> DType | None:
    """The floating point type that a Cast says."""
    to = next((each.i for each in node.attribute if each.name == "to"), TensorProto.UNDEFINED)
    return {
        TensorProto.FLOAT: DType.FP32,
        TensorProto.FLOAT16: DType.FP16,
        TensorProto.BFLOAT16: DType.BF16,
    }.get(to)
