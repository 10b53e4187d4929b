"""The forms of a backend test in which a model may reach wpk.

The suite hands over as inputs what exporters write as constants (weights, shapes, axes), and many of its
models have an opset that nobody has exported for years. A test that is refused as it is may be carried
in a form that a real model has, and its numbers are worth comparing there too.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from backend_cases import Case, DataSet
from onnx import version_converter

from wpk.loading import OLDEST_OPSET

MODERN_OPSET = 13
"""Axes and splits are inputs from here on, as in newer models; the converter knows the way."""

SMALL_ELEMENTS = 16
"""An integer tensor up to here is taken for a shape, axes or the like."""


@dataclass(frozen=True)
class Form:
    """A model with its data.

    Attributes:
        words: What differs from the suite's model; empty where nothing does.
        model: The model.
        data: Inputs by name, and outputs in the graph's order.
    """

    words: str
    model: onnx.ModelProto
    data: tuple[tuple[dict[str, Any], list[Any]], ...]


_MADE_FROM_SIZES = (
    "node/blackmanwindow",
    "node/constantofshape",
    "node/hammingwindow",
    "node/hannwindow",
    "node/melweightmatrix",
    "node/rangeop",
)
"""Groups whose tests have no inputs but what decides the result's size; a network holds it as constants."""

_BESIDE = onnx.helper.make_tensor_value_info("beside", onnx.TensorProto.FLOAT, [1])
"""The input of a model all of whose others became constants: what has none is no model of anything."""


def forms(case: Case) -> Iterator[Form]:
    """The test as it is, then in other forms; each differs from those before it."""
    model, words = case.model, []
    yield _form(model, words, case.data, lambda place, value: False)
    newer = _newer_opset(model)
    if newer is not None:
        model, words = newer, ["newer opset"]
        yield _form(model, words, case.data, lambda place, value: False)
    frozen: set[str] = set()
    for name, is_constant in _CONSTANTS.items():
        form = _form(model, [*words, name], case.data[:1], is_constant)
        names = {each.name for each in form.model.graph.initializer}
        if names != frozen and form.model.graph.initializer != model.graph.initializer:
            frozen = names
            yield form
    if case.group in _MADE_FROM_SIZES:
        yield _all_constant(model, words, case.data[:1])


def _is_small_integer(place: int, value: Any) -> bool:
    return (
        isinstance(value, np.ndarray)
        and value.dtype in (np.int32, np.int64)
        and value.size <= SMALL_ELEMENTS
    )


def _is_further_tensor(place: int, value: Any) -> bool:
    return place > 0 and isinstance(value, np.ndarray)


_CONSTANTS: dict[str, Callable[[int, Any], bool]] = {
    "integers constant": _is_small_integer,
    "weights constant": _is_further_tensor,
}
"""Which inputs become constants, by their place and value."""


def _newer_opset(model: onnx.ModelProto) -> onnx.ModelProto | None:
    versions = [each.version for each in model.opset_import if each.domain in ("", "ai.onnx")]
    if not versions or versions[0] >= OLDEST_OPSET:
        return None
    try:
        return version_converter.convert_version(model, MODERN_OPSET)
    except RuntimeError:  # the converter has no way for some operators
        return None


def _all_constant(model: onnx.ModelProto, words: list[str], data: tuple[DataSet, ...]) -> Form:
    """The model with all inputs constant, in a graph that has another input."""
    form = _form(model, [*words, "sizes constant"], data, lambda place, value: True)
    (last,) = form.model.graph.input
    ((fed, outputs),) = form.data
    form.model.graph.initializer.append(onnx.numpy_helper.from_array(fed[last.name], last.name))
    form.model.graph.input[0].CopyFrom(_BESIDE)
    return Form(form.words, form.model, (({"beside": np.zeros(1, np.float32)}, outputs),))


def _form(
    model: onnx.ModelProto,
    words: list[str],
    data: tuple[DataSet, ...],
    is_constant: Callable[[int, Any], bool],
) -> Form:
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    changed.ir_version = max(model.ir_version, 4)  # before, every constant was an input too
    given = {each.name for each in model.graph.initializer}
    names = [each.name for each in model.graph.input if each.name not in given]
    first = dict(zip(names, data[0][0], strict=True))
    constants = {n: v for i, (n, v) in enumerate(first.items()) if is_constant(i, v)}
    if names and len(constants) == len(names):  # what has no input is no model of anything
        constants.pop(names[0], None)
    kept = [each for each in model.graph.input if each.name not in constants]
    del changed.graph.input[:]
    changed.graph.input.extend(kept)
    for name, value in constants.items():
        changed.graph.initializer.append(onnx.numpy_helper.from_array(value, name))
    fed = [
        ({n: v for n, v in zip(names, inputs, strict=True) if n not in constants}, outputs)
        for inputs, outputs in data
    ]
    return Form(", ".join(words), changed, tuple(fed))
