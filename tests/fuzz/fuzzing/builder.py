"""A model under construction: every node is executed as it is added, so that only valid ones stay."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np
import onnx

from fuzzing.evaluation import Array, NodeRunner, reads
from fuzzing.rounding import BF16, FLOATS

FREE = "N"
"""The free batch."""

DRAWN_SIZES = (3, 5)
"""What the free batch is while a model is drawn: a size that differs between the two is free."""

MOST_ELEMENTS = 4096
LARGEST = 1e4
"""Beyond this, sums of squares leave fp16; nodes that make such values are not added."""


class Rejected(Exception):  # noqa: N818 (a draw that did not work out is no error)
    """The node that was drawn is not valid here, or makes numbers that say nothing."""


Size = int | str


@dataclass(frozen=True, eq=False)
class Value:
    """A tensor of the model.

    Attributes:
        name: Its name.
        shape: Sizes; the free one is `FREE`.
        arrays: Its values on the inputs drawn, at each of `DRAWN_SIZES` (one where none is free).
        constant: Whether it is known before the model runs.
    """

    name: str
    shape: tuple[Size, ...]
    arrays: tuple[Array, ...]
    constant: bool = False

    @property
    def dtype(self) -> np.dtype:
        """Element type."""
        return self.arrays[0].dtype

    @property
    def rank(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def is_float(self) -> bool:
        """Whether its elements are floating point numbers."""
        return self.dtype in FLOATS

    @property
    def is_free(self) -> bool:
        """Whether its first size is the free batch."""
        return FREE in self.shape

    @property
    def inner(self) -> tuple[int, ...]:
        """Sizes without the first."""
        return self.arrays[0].shape[1:]


@dataclass(frozen=True)
class Range:
    """What an input is drawn from: integers in [low, high), or floats; from 0.5 up if positive."""

    low: int = 0
    high: int = 0
    positive: bool = False

    def draw(self, rng: np.random.Generator, shape: Sequence[int], dtype: np.dtype) -> Array:
        """Random values."""
        if dtype == np.bool_:
            return rng.integers(0, 2, shape).astype(dtype)
        if dtype not in FLOATS:
            return rng.integers(self.low, self.high, shape).astype(dtype)
        values = rng.standard_normal(shape)
        return (np.abs(values) + 0.5 if self.positive else values).astype(np.float32).astype(dtype)


@dataclass
class Builder:
    """A model under construction.

    Attributes:
        random: Decides everything.
        opset: Of the model.
        values: Tensors that later nodes may read, oldest first.
    """

    random: Random
    opset: int
    values: list[Value] = field(default_factory=list)
    inputs: list[Value] = field(default_factory=list)
    ranges: dict[str, Range] = field(default_factory=dict)
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    initializers: dict[str, Array] = field(default_factory=dict)
    read: set[str] = field(default_factory=set)
    _count: int = 0

    def name(self, stem: str) -> str:
        """A name that nothing has."""
        self._count += 1
        return f"{stem}{self._count}"

    def rng(self) -> np.random.Generator:
        """A generator for arrays."""
        return np.random.default_rng(self.random.getrandbits(32))

    def input(
        self,
        shape: Sequence[Size],
        dtype: Any = np.float32,
        among: Range | None = None,
    ) -> Value:
        """A new input of the model."""
        given = among or Range(0, 2)
        kind = np.dtype(dtype)
        sizes = DRAWN_SIZES if FREE in shape else DRAWN_SIZES[:1]
        arrays = tuple(given.draw(self.rng(), _at(shape, size), kind) for size in sizes)
        value = Value(self.name("x"), tuple(shape), arrays)
        self.inputs.append(value)
        self.ranges[value.name] = given
        self.values.append(value)
        return value

    def constant(self, array: Any, dtype: Any = None) -> Value:
        """A constant: mostly an initializer, at times a Constant node."""
        values = np.asarray(array, dtype)
        if self.random.random() < 0.15 and values.dtype != BF16:
            tensor = onnx.numpy_helper.from_array(values, self.name("c"))
            made = self.add("Constant", [], value=tensor, keep=False)
            return Value(made.name, made.shape, made.arrays, constant=True)
        name = self.name("w")
        self.initializers[name] = values
        return Value(name, values.shape, (values,), constant=True)

    def weight(self, *shape: int, dtype: Any = np.float32, scale: float = 1.0) -> Value:
        """A constant of normal numbers."""
        values = self.rng().standard_normal(shape) * scale
        return self.constant(values.astype(np.float32).astype(dtype))

    def ints(self, values: Any, dtype: Any = np.int64) -> Value:
        """A constant of integers."""
        return self.constant(np.asarray(values, dtype))

    def add(
        self,
        op: str,
        inputs: Sequence[Value | None],
        *,
        keep: bool = True,
        captured: Sequence[Value] = (),
        **attributes: Any,
    ) -> Value:
        """Add a node; its first output. See `add_many`."""
        made = self.add_many(op, inputs, outputs=1, keep=keep, captured=captured, **attributes)
        return made[0]

    def add_many(
        self,
        op: str,
        inputs: Sequence[Value | None],
        *,
        outputs: int,
        keep: bool = True,
        captured: Sequence[Value] = (),
        **attributes: Any,
    ) -> list[Value]:
        """Add a node.

        Args:
            op: Operator.
            inputs: What it reads; None for an input that is left out.
            outputs: How many it has.
            keep: Whether later nodes may read its outputs.
            captured: What its subgraphs read.
            **attributes: Of the node; those that are None are left out.

        Raises:
            Rejected: ONNX Runtime refuses the node, or its results say nothing.
        """
        _require_defined(op, self.opset)
        given = list(inputs)
        while given and given[-1] is None:
            given.pop()
        names = [self.name("t") for _ in range(outputs)]
        present = {key: value for key, value in attributes.items() if value is not None}
        node = onnx.helper.make_node(
            op, [v.name if v else "" for v in given], names, self.name("n"), **present
        )
        arrays = self._execute(node, [*(v for v in given if v), *captured])
        constant = all(v is None or v.constant for v in (*given, *captured))
        made = [Value(name, _shape(arrays[name]), arrays[name], constant) for name in names]
        self.nodes.append(node)
        self.read |= reads(node)
        if keep and not constant:
            self.values.extend(made)
        return made

    def _execute(
        self, node: onnx.NodeProto, given: Sequence[Value]
    ) -> dict[str, tuple[Array, ...]]:
        rounds = []
        try:
            runner = NodeRunner(node, {v.name: v.dtype for v in given}, self.opset)
            for index in range(max([len(v.arrays) for v in given], default=1)):
                fed = {v.name: v.arrays[min(index, len(v.arrays) - 1)] for v in given}
                rounds.append(runner(fed))
        except Exception as error:  # ONNX Runtime's share no base class
            raise Rejected(f"{node.op_type}: {error}") from error
        arrays = {name: tuple(made[name] for made in rounds) for name in rounds[0]}
        for each in arrays.values():
            _require_sane(node.op_type, each)
        return arrays


def _require_defined(op: str, opset: int) -> None:
    """ONNX Runtime knows some operators before ONNX does."""
    try:
        onnx.defs.get_schema(op, opset, "")
    except onnx.defs.SchemaError as error:
        raise Rejected(str(error)) from error


def _at(shape: Sequence[Size], size: int) -> tuple[int, ...]:
    return tuple(size if n == FREE else int(n) for n in shape)


def _shape(arrays: Sequence[Array]) -> tuple[Size, ...]:
    shapes = [array.shape for array in arrays]
    if len(shapes) == 1 or shapes[0] == shapes[1]:
        return shapes[0]
    if len(shapes[0]) != len(shapes[1]):
        raise Rejected("the rank depends on the batch")
    return tuple(a if a == b else _free(a, b) for a, b in zip(*shapes, strict=True))


def _free(first: int, second: int) -> str:
    return FREE if (first, second) == DRAWN_SIZES else f"{FREE}:{first}:{second}"


def _require_sane(op: str, arrays: Sequence[Array]) -> None:
    for array in arrays:
        if array.size == 0 or array.size > MOST_ELEMENTS:
            raise Rejected(f"{op} makes {array.size} elements")
        if array.dtype not in FLOATS:
            continue
        with np.errstate(all="ignore"):
            wide = np.abs(array.astype(np.float64))
        if not np.isfinite(wide).all() or wide.max() > LARGEST:
            raise Rejected(f"{op} makes numbers that are not finite, or too large")


def model_of(builder: Builder, outputs: Mapping[str, Value]) -> onnx.ModelProto:
    """The finished model, without what its outputs do not need (at times with it).

    Args:
        builder: What was drawn.
        outputs: By name.
    """
    wanted = {value.name for value in outputs.values()}
    nodes: list[onnx.NodeProto] = []
    for node in reversed(builder.nodes):
        if wanted & set(node.output) or builder.random.random() < 0.1:
            nodes.insert(0, node)
            wanted |= reads(node)
    infos = [_info(each) for each in builder.inputs if each.name in wanted]
    tensors = [
        onnx.numpy_helper.from_array(array, name)
        for name, array in builder.initializers.items()
        if name in wanted
    ]
    graph = onnx.helper.make_graph(
        nodes, "fuzzed", infos, [_info(each) for each in outputs.values()], tensors
    )
    ids = [onnx.helper.make_opsetid("", builder.opset)]
    needed = onnx.helper.OP_SET_ID_VERSION_MAP.get(("ai.onnx", builder.opset), 8)
    return onnx.helper.make_model(graph, opset_imports=ids, ir_version=min(max(needed, 6), 13))


def _info(value: Value) -> onnx.ValueInfoProto:
    code = onnx.helper.np_dtype_to_tensor_dtype(value.dtype)
    shape = [None if isinstance(n, str) and n != FREE else n for n in value.shape]
    return onnx.helper.make_tensor_value_info(value.name, code, shape)
