"""Turn a normalisation and an activation in front of a product into limits of what it reads.

    Conv(Relu(x * a + b); W, c)  ->  Conv(Max(x, m); W a, c - sum over W a m)        m = -b / a

since relu(a x + b) = a (max(x, m) - m) for a > 0; for a < 0 the minimum takes its place, and a Clip
from 0 has both. A limit is one operation on what the product has loaded, and exact in any type, so
the normalised tensor is never stored: the layers of a DenseNet and of other networks that normalise
before they multiply need one kernel less each.

The product's weights and the limits are rounded here to what products will read, and the sum is of
the rounded ones, so that channels below their limit give what they gave: nothing. That sum may be
much larger than what is left of it, so in 16 bits what its rounding leaves is added apart; and a
channel that never leaves its limit, because of the operator that computes ``x``, gets weights of 0.
Only where nothing is padded, and where the producer of ``x`` could not compute the activation: it has
other readers, or only moves data.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import onnx_graphsurgeon as gs

from wpk.dtypes import Precision
from wpk.graph_passes.core import GraphEditor, Refusal, Rule
from wpk.graph_passes.core.kinds import is_anchor, is_elementwise
from wpk.graph_passes.core.query import (
    floats,
    given,
    is_op,
    made_by,
    pads,
    producer,
    rank,
    split_constant,
    uniform,
    why_shared,
)
from wpk.graph_passes.fold.linear_operator import (
    Vector,
    channel_vector,
    float_weight,
    input_channels,
    why_not_linear,
)
from wpk.operators import OPERATORS


@dataclass(frozen=True)
class _Activation:
    """``min(max(x * scale + shift, 0), ceiling)`` with numbers for each channel of ``source``."""

    source: gs.Tensor
    scale: Vector
    shift: Vector
    ceiling: float


@dataclass(frozen=True)
class _Limits:
    """What takes the activation's place.

    Attributes:
        lower, upper: Of each channel, rounded to the product's type.
        factor: What the weights of each channel are multiplied by.
        zero: The limit at which a channel gives nothing; infinite where no limit does.
        rest: What a channel without a zero gives at x = 0, in the activation's units.
    """

    lower: Vector
    upper: Vector
    factor: Vector
    zero: Vector
    rest: Vector


@dataclass(frozen=True)
class _Product:
    """A product behind limits: its weights, and what is added to it for each output channel."""

    limits: _Limits
    weight: Vector
    bias: Vector


@dataclass(frozen=True)
class _Clamp:
    """A product behind an activation, and what both become.

    Attributes:
        node: The product.
        source: What the activation is applied to.
        new: The product behind limits, rounded to what products read.
        exact: The same without rounding.
        bias: What ``new`` adds in one type; the rest of its bias is added apart.
    """

    node: gs.Node
    source: gs.Tensor
    new: _Product
    exact: _Product
    bias: Vector


class ClampBeforeProduct(Rule[_Clamp]):
    """Replace ``Conv(Relu(x * a + b))`` by ``Conv(Min(Max(x, lower), upper))`` with other weights."""

    name = "clamp-before-product"
    ops = ("Conv",)
    is_choice = True
    choice_words = (
        "a product keeps what it reads between limits instead of a normalisation before it"
    )

    def __init__(self, precision: Precision) -> None:
        """Remember the precision, whose rounding weights and limits get."""
        self._precision = precision

    def decided_over(self, match: _Clamp) -> Sequence[gs.Node]:
        """Return what computes the activation, and the product."""
        nodes, tensor = [match.node], match.node.inputs[0]
        while tensor is not match.source:
            nodes.append(tensor.inputs[0])
            sides = split_constant(nodes[-1]) if len(nodes) > 2 else None
            tensor = sides[0] if sides is not None else nodes[-1].inputs[0]
        return nodes[::-1]

    def match(self, graph: gs.Graph, node: gs.Node) -> _Clamp | Refusal | None:
        """Match a convolution that alone reads such an activation."""
        activation = made_by(node.inputs[0], "Relu", "Clip")
        found = _read(graph, activation, node) if activation is not None else None
        if found is None or isinstance(found, Refusal):
            return found
        reason = _why_padded(node)
        if reason is not None:
            return Refusal(node.name, reason)
        old = float_weight(node)
        rounded = _rounding(self._precision)
        bias = floats(given(node, 2))
        bias = np.zeros(len(old)) if bias is None else bias
        exact = _product(old, bias, _limits(found, lambda values: values), lambda values: values)
        new = _product(old, bias, _limits(found, rounded), rounded)
        reason = _why_not_held(exact.weight, new.weight, self._precision)
        if reason is not None:
            return Refusal(node.name, reason)
        kept = rounded(new.bias) if self._precision.storage.bytes == 2 else new.bias
        return _Clamp(node, found.source, new, exact, kept)

    def rewrite(self, editor: GraphEditor, match: _Clamp) -> None:
        """Write the limits and the product; what is left of its bias is added behind."""
        new, exact, kept = match.new, match.exact, match.bias
        limited = _limited(editor, match.node, match.source, new, exact)
        old, output = match.node.inputs[1], match.node.outputs[0]
        rest = (new.bias - kept).astype(old.dtype)
        apart = bool(rest.any())
        inputs = [
            limited,
            editor.constant(f"{old.name}_scaled", new.weight, old.dtype, exact.weight),
            editor.constant(f"{old.name}_offsets", kept, old.dtype, kept if apart else exact.bias),
        ]
        name, attrs = f"{match.node.name}_clamped", dict(match.node.attrs)
        result = editor.add("Conv", inputs, like=output, name=name, attrs=attrs)
        if apart:
            shape = (-1, 1, 1)
            left = (exact.bias - kept).reshape(shape)
            column = editor.constant(f"{old.name}_rest", rest.reshape(shape), old.dtype, left)
            result = editor.add("Add", [result, column], like=output)
        editor.replace(output, result)


def _product(
    old: Vector, bias: Vector, limits: _Limits, rounded: Callable[[Vector], Vector]
) -> _Product:
    """What the product becomes behind these limits."""
    spread = (1, -1, *[1] * (old.ndim - 2))
    weight = rounded(old * limits.factor.reshape(spread))
    has_zero = np.isfinite(limits.zero)
    given_up = np.where(has_zero, limits.zero, 0.0).reshape(spread)
    rest = np.where(has_zero, 0.0, limits.rest).reshape(spread)
    axes = tuple(range(1, old.ndim))
    with np.errstate(invalid="ignore"):  # an infinite weight is refused after this
        offsets = bias - (weight * given_up).sum(axis=axes) + (old * rest).sum(axis=axes)
    return _Product(limits, weight, offsets)


def _read(graph: gs.Graph, node: gs.Node, product: gs.Node) -> _Activation | Refusal | None:
    """The activation that ``node`` ends; None where another kernel computes it at no cost."""
    ceiling = _ceiling(node)
    shared = why_shared(graph, node.outputs[0]) or why_not_linear(product)
    if ceiling is None or rank(node.outputs[0]) != 4:
        return None
    if int(product.attrs.get("group", 1)) != 1:
        return None
    channels = 0 if shared is not None else input_channels(product)
    scale, shift, source = np.ones(channels), np.zeros(channels), node.inputs[0]
    for op in ("Add", "Mul"):
        step = made_by(source, op)
        sides = split_constant(step) if step is not None else None
        if sides is None or shared is not None:
            continue
        vector = channel_vector(product, sides[1], 4, 1, channels)
        if isinstance(vector, Refusal) or why_shared(graph, source) is not None:
            break
        scale, shift = (scale, vector) if op == "Add" else (vector, shift)
        source = sides[0]
    if _is_free(source):
        return None
    if shared is not None:
        return Refusal(product.name, shared)
    return _Activation(source, scale, shift, ceiling)


def _ceiling(node: gs.Node) -> float | None:
    """Where the activation ends; None for a Clip that does not begin at 0."""
    if is_op(node, "Relu"):
        return np.inf
    low, high = given(node, 1), given(node, 2)
    if low is None or uniform(low) != 0.0:
        return None
    return np.inf if high is None else uniform(high)


def _is_free(source: gs.Tensor) -> bool:
    """Whether the kernel that makes ``source`` computes what alone reads it."""
    maker = producer(source)
    if maker is None:
        return True
    return len(source.outputs) == 1 and (is_anchor(maker) or is_elementwise(maker))


def _why_padded(product: gs.Node) -> str | None:
    if pads(product):
        return f"'{product.name}' pads with zeros, which are no zeros of what it would read"
    return None


def _limits(found: _Activation, rounded: Callable[[Vector], Vector]) -> _Limits:
    scale, shift = found.scale, found.shift
    constant = scale == 0
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        zero = rounded(np.where(constant, np.nan, -shift / scale))
        top = rounded(np.where(constant, np.nan, (found.ceiling - shift) / scale))
    rises = scale > 0
    lower, upper = np.where(rises, zero, top), np.where(rises, top, zero)
    low, high = _range(found.source)
    dead = np.where(rises, zero >= high, zero <= low)
    never = constant | dead | (lower == np.inf) | (upper == -np.inf)
    rest = np.where(constant, np.clip(shift, 0.0, found.ceiling), np.where(never, 0.0, shift))
    lower, upper = np.where(never, -np.inf, lower), np.where(never, np.inf, upper)
    zero = np.where(never, np.nan, zero)
    return _Limits(lower, upper, np.where(never, 0.0, scale), zero, rest)


def _range(source: gs.Tensor) -> tuple[float, float]:
    """Between which numbers a tensor lies whatever the model is given."""
    maker = producer(source)
    row = OPERATORS.get(maker.op) if maker is not None else None
    return (-np.inf, np.inf) if row is None or row.between is None else row.between


def _rounding(precision: Precision) -> Callable[[Vector], Vector]:
    """Rounding to what products of a precision read."""
    if precision is not Precision.TF32:
        kind = precision.storage.numpy

        def to_storage(values: Vector) -> Vector:
            with np.errstate(over="ignore"):  # what is too large becomes infinite
                return values.astype(np.float32).astype(kind).astype(np.float64)

        return to_storage

    def to_tf32(values: Vector) -> Vector:
        mantissa, exponent = np.frexp(values)
        return np.asarray(np.ldexp(np.rint(mantissa * 2.0**11) * 2.0**-11, exponent), np.float64)

    return to_tf32


def _why_not_held(exact: Vector, weight: Vector, precision: Precision) -> str | None:
    """Say why the type of products cannot hold the scaled weights."""
    if not bool(np.isfinite(weight).all()):
        return f"a scaled weight is larger than {precision.value} reaches"
    axes = (0, *range(2, exact.ndim))
    lost = np.abs(weight - exact).max(axis=axes)
    kept = 2 * precision.multiply_roundoff * np.abs(exact).max(axis=axes)
    if bool((lost > kept).any()):
        channel = int(np.argmax(lost - kept))
        return f"the scaled weights of channel {channel} are too small for {precision.value}"
    return None


def _limited(
    editor: GraphEditor, product: gs.Node, source: gs.Tensor, new: _Product, exact: _Product
) -> gs.Variable:
    name, dtype = product.name, product.inputs[1].dtype

    def column(what: str, rounded: Vector, unrounded: Vector) -> gs.Constant:
        shape = (-1, 1, 1)
        return editor.constant(
            f"{name}_{what}", rounded.reshape(shape), dtype, unrounded.reshape(shape)
        )

    lower = column("lower", new.limits.lower, exact.limits.lower)
    limited = editor.add("Max", [source, lower], like=source, name=f"{name}_raised")
    if not bool(np.isfinite(new.limits.upper).any()):
        return limited
    upper = column("upper", new.limits.upper, exact.limits.upper)
    return editor.add("Min", [limited, upper], like=source, name=f"{name}_lowered")
