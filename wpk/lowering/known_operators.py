"""Operators that were lowered before, in the same model: forms of a model differ in a few of them.

What becomes of an operator follows from its body, from how the tensors that it reads lie in memory, from the
constants among them, and from where its output lies. Where all of these are as they were, its problem is, too.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx_graphsurgeon as gs
from numpy.typing import NDArray

from wpk.dtypes import DType
from wpk.extent import Extent
from wpk.file_arrays import LARGE_BYTES
from wpk.lowering.anchors.base import LoweredProblem
from wpk.lowering.body import OperatorBody
from wpk.lowering.context import Context
from wpk.lowering.views import View
from wpk.problems import Problem

Arrays = Mapping[str, NDArray[Any]]

Key = tuple[object, ...]
"""All that decides what becomes of an operator; equal for operators that differ in their own name only."""


@dataclass(frozen=True)
class LoweredOperator:
    """What became of an operator.

    Attributes:
        shape: Of its output, as its body has it.
        leading: First extent of that.
        home: Where the output lies.
        lowered: Its problem before free dimensions have their sizes, and the views that it reads.
        problem: The problem with these sizes.
    """

    shape: tuple[int, ...]
    leading: Extent
    home: View
    lowered: LoweredProblem
    problem: Problem


@dataclass(frozen=True)
class _Entry:
    """An operator with its name, and the constants that it derived."""

    name: str
    operator: LoweredOperator
    derived: Arrays


class KnownOperators:
    """What was lowered; make one for a model, whose constants are the same arrays in all of its forms."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._entries: dict[Key, _Entry] = {}

    def find(self, key: Key | None, name: str, context: Context) -> LoweredOperator | None:
        """Return what became of an equal operator, and give its constants to the context.

        Args:
            key: Of the operator (`key_of`).
            name: Of the operator; constants that it derives from its body are called after it.
            context: Of the form that is lowered.
        """
        entry = None if key is None else self._entries.get(key)
        if entry is None:
            return None
        if entry.name == name:
            context.constants.update(entry.derived)
            return entry.operator
        names = {old: _renamed(old, entry.name, name) for old in entry.derived}
        context.constants.update({names[old]: array for old, array in entry.derived.items()})
        return _with_names(entry.operator, names)

    def keep(
        self,
        key: Key | None,
        name: str,
        operator: LoweredOperator,
        before: Arrays,
        context: Context,
    ) -> None:
        """Remember what became of an operator, unless it derived large constants.

        Args:
            key: Of the operator.
            name: Of the operator.
            operator: What became of it.
            before: The context's constants before it was lowered.
            context: The same context behind it.
        """
        after = context.constants
        derived = {n: array for n, array in after.items() if before.get(n) is not array}
        if key is None or any(array.nbytes >= LARGE_BYTES for array in derived.values()):
            return
        self._entries[key] = _Entry(name, operator, derived)


def key_of(
    node: gs.Node,
    body: OperatorBody,
    output: tuple[str, DType],
    inputs: Mapping[str, View],
    context: Context,
) -> Key | None:
    """Return what decides over an operator; None where its body holds what has no content of its own.

    Args:
        node: The call, or the node itself.
        body: What it computes.
        output: Name and type of what it writes.
        inputs: What the inputs of its body stand for.
        context: Precision, opset and constants.
    """
    lines = [_line(each) for each in body.nodes]
    if None in lines:
        return None
    sources = (view.source for view in inputs.values())
    arrays = [_Same(context.constants[name]) for name in sources if name in context.constants]
    views = tuple(inputs.items())
    scope = context.precision, context.opset, node.domain, body.inputs, body.output
    return scope, output, views, tuple(arrays), tuple(lines)


class _Same:
    """An array by its identity, which nothing else has as long as this exists."""

    def __init__(self, array: object) -> None:
        self._array = array

    def __hash__(self) -> int:
        return id(self._array)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self._array is other._array


def _line(node: gs.Node) -> Key | None:
    attributes = []
    for name, value in node.attrs.items():
        described = _value(value)
        if described is None:
            return None
        attributes.append((name, described))
    sides = [tuple([_tensor(tensor) for tensor in side]) for side in (node.inputs, node.outputs)]
    return node.op, node.domain, node.name, tuple(attributes), *sides


def _tensor(tensor: gs.Tensor) -> object:
    if isinstance(tensor, gs.Constant):
        return tensor.name, _array(tensor.values), tensor.export_dtype
    shape = None if tensor.shape is None else tuple(tensor.shape)
    return tensor.name, tensor.dtype, shape


def _array(array: object) -> object:
    """A constant of a body: by its numbers where these are few."""
    if isinstance(array, np.ndarray) and array.nbytes <= _FEW_BYTES:
        return str(array.dtype), array.shape, array.tobytes()
    return _Same(array)


_FEW_BYTES = 4096


def _value(value: object) -> object:
    """An attribute by its content; None for what has none, such as a subgraph."""
    if isinstance(value, gs.Constant):
        return _tensor(value)
    if isinstance(value, np.ndarray):
        return _array(value)
    if isinstance(value, int | float | str | bytes | type | np.dtype | np.generic):
        return type(value), repr(value)  # 1 and 1.0 are equal, and not the same
    if isinstance(value, list | tuple):
        parts = tuple([_value(each) for each in value])
        return None if None in parts else parts
    return None


def _renamed(constant: str, old: str, new: str) -> str:
    """The name of a constant that an operator of another name derives."""
    return f"{new}{constant[len(old) :]}" if constant.startswith(f"{old}.") else constant


def _with_names(operator: LoweredOperator, names: Mapping[str, str]) -> LoweredOperator:
    """The operator reading constants by other names."""
    views = tuple(_reading(operator.lowered.inputs, names))
    return replace(operator, lowered=replace(operator.lowered, inputs=views))


def _reading(views: Sequence[View], names: Mapping[str, str]) -> Iterator[View]:
    for view in views:
        name = names.get(view.source, view.source)
        yield view if name == view.source else replace(view, source=name)
