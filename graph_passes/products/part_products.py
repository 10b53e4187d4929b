"""Make several products of one whose columns are read apart.

    Split(L(x; [W1 W2], [b1 b2]))         ->  L(x; W1, b1), L(x; W2, b2)      L: Conv, Gemm, MatMul + b
    Split(f(L(x; W)))                     ->  f(L(x; W1)), f(L(x; W2))        f an activation

Exact: every column is the same sum as before. Exporters write query, key and value as one product. That is usually
the faster form, and so this is done only where it is chosen: products apart read the input more often, but each
writes its result as its reader wants it, and has its own best kernel.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor, Refusal, Rule
from wpk.graph_passes.core.exact import moved_constant
from wpk.graph_passes.core.known import is_constant
from wpk.graph_passes.core.query import (
    dims,
    given,
    integers,
    is_op,
    made_by,
    rank,
    split_constant,
    why_any_shared,
)
from wpk.graph_passes.fold.linear_operator import channel_axis, output_channels, why_not_linear
from wpk.operators import Rewrite, names

_ACTIVATIONS = names(lambda row: Rewrite.ACTIVATION in row.rewrites)


@dataclass(frozen=True)
class _Parts:
    """A product whose columns are taken apart.

    Attributes:
        product: The Conv, Gemm or MatMul.
        behind: What is between it and the Split: the Add of a bias, an activation.
        split: The Split.
        sizes: Columns of each part.
    """

    product: gs.Node
    behind: tuple[gs.Node, ...]
    split: gs.Node
    sizes: tuple[int, ...]


class PartProducts(Rule[_Parts]):
    """Replace a product and the Split of its columns by a product for each part."""

    name = "part-products"
    ops = ("Split",)
    is_choice = True
    is_usual = False
    choice_words = "a product stays one whose columns are read apart"

    def decided_over(self, match: _Parts) -> Sequence[gs.Node]:
        """Return the product, what is behind it, and the Split."""
        return match.product, *match.behind, match.split

    def match(self, graph: gs.Graph, node: gs.Node) -> _Parts | Refusal | None:
        """Match the Split of a product's columns, behind a bias and an activation at most."""
        behind, tensor = list[gs.Node](), node.inputs[0]
        for ops in (_ACTIVATIONS, ("Add",)):
            step = made_by(tensor, *ops)
            if step is None or not _keeps_columns(step):
                continue
            behind.insert(0, step)
            tensor = step.inputs[0] if ops is _ACTIVATIONS else _variable(step)
        product = made_by(tensor, "Conv", "Gemm", "MatMul")
        if product is None:
            return None
        reason = why_not_linear(product) or _why_not_columns(product, node)
        made = [product.outputs[0], *(each.outputs[0] for each in behind)]
        reason = reason or why_any_shared(graph, made)
        sizes = _sizes(node, output_channels(product)) if reason is None else ()
        if reason is None and not sizes:
            reason = f"the parts of '{node.name}' are not known"
        if reason is not None:
            return Refusal(node.name, reason)
        return _Parts(product, tuple(behind), node, tuple(sizes))

    def rewrite(self, editor: GraphEditor, match: _Parts) -> None:
        """Write a product, and what is behind it, for each part."""
        begin = 0
        for output, size in zip(list(match.split.outputs), match.sizes, strict=True):
            tensor = match.product.inputs[0]
            for node in (match.product, *match.behind):
                inputs = [tensor, *_parameters(editor, match, node, begin, size)]
                attrs = dict(node.attrs)
                tensor = editor.add(node.op, inputs, like=output, attrs=attrs)
            editor.replace(output, tensor)
            begin += size


def _keeps_columns(node: gs.Node) -> bool:
    """Whether a node works on each column by itself, with constants alone."""
    if is_op(node, "Add"):
        return split_constant(node) is not None
    return all(map(is_constant, node.inputs[1:]))


def _variable(node: gs.Node) -> gs.Tensor:
    sides = split_constant(node)
    return node.inputs[0] if sides is None else sides[0]


def _why_not_columns(product: gs.Node, split: gs.Node) -> str | None:
    dimensions = rank(split.inputs[0])
    if dimensions is None:
        return f"the rank of '{split.inputs[0].name}' is unknown"
    if int(split.attrs.get("axis", 0)) % dimensions != channel_axis(product) % dimensions:
        return f"'{split.name}' does not take the columns of '{product.name}' apart"
    if int(product.attrs.get("group", 1)) != 1:
        return f"'{product.name}' has groups of channels"
    if is_op(product, "MatMul") and rank(product.inputs[1]) != 2:
        return f"'{product.inputs[1].name}' is a batch of matrices"
    return None


def _sizes(split: gs.Node, columns: int) -> list[int]:
    """The columns of each part; nothing where they are not known."""
    sizes = given(split, 1)
    if sizes is not None:
        return integers(sizes) or []
    step = -(-columns // len(split.outputs))
    return [min(step, columns - step * place) for place in range(len(split.outputs))]


def _parameters(
    editor: GraphEditor, match: _Parts, node: gs.Node, begin: int, size: int
) -> list[gs.Tensor]:
    """The other inputs of a node, for the columns from ``begin`` on."""
    columns = sum(match.sizes)
    others = [t for t in node.inputs if is_constant(t)]
    if node is match.product:
        transposed = is_op(node, "Gemm") and node.attrs.get("transB", 0)
        first = is_op(node, "Conv") or transposed
        axes = [0 if first else -1, -1]
    else:
        axis = channel_axis(match.product)
        rest = rank(match.split.inputs[0]) or 0
        axes = [axis % rest - rest] * len(others)
    return [
        each if each.is_empty() else _part(editor, each, axis, columns, begin, size)
        for each, axis in zip(others, axes, strict=False)
    ]


def _part(
    editor: GraphEditor, constant: gs.Constant, axis: int, columns: int, begin: int, size: int
) -> gs.Constant:
    """A range of a constant along an axis; the constant itself where it is the same for all columns."""
    shape = dims(constant) or []
    if len(shape) < -axis or not shape or shape[axis] != columns:
        return constant
    places = np.arange(begin, begin + size)
    name = editor.new_name(f"{constant.name}_part")
    return moved_constant(name, constant, lambda array: array.take(places, axis))
