"""Let products be added to as they are, not as another shape of them.

    Reshape(Reshape(s) + a + b)  ->  s + Reshape(a + b)        s: a product of two tensors, or a part; a, b broadcast

Attention with relative positions parts queries and keys in rows and columns, to add a term for each (Li et al. 2022,
MViTv2; Kirillov et al. 2023, SAM). Sums are those of the same numbers in another order. The product then stands in front
of its softmax, and both become one operator.
"""

from typing import NamedTuple

import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor, Refusal, Rule, refusal
from wpk.graph_passes.core.node_parts import NodeParts
from wpk.graph_passes.core.query import (
    Dims,
    dims,
    made_by,
    same_dims,
    why_any_shared,
)
from wpk.graph_passes.movement.chains.reshape_chains import RESHAPES

_MOST_TERMS = 4


class _Sum(NamedTuple):
    """A Reshape behind sums, the product, and what is added to it, first to last."""

    last: gs.Node
    product: gs.Tensor
    terms: list[gs.Tensor]


class SumsAround(Rule[_Sum]):
    """Add up what is added to a reshaped product, and add that to the product."""

    name = "sums-around"
    ops = RESHAPES

    def match(self, graph: gs.Graph, node: gs.Node) -> _Sum | Refusal | None:
        """Match a Reshape that takes another back, behind which terms of known sizes were added."""
        terms: list[gs.Tensor] = []
        between: list[gs.Tensor] = []
        tensor = node.inputs[0]
        whole = dims(tensor)
        while (added := made_by(tensor, "Add")) is not None and len(terms) < _MOST_TERMS:
            between.append(tensor)
            tensor, term = _sides(added, whole)
            terms.append(term)
        if whole is None or whole[-1:] == (dims(node.outputs[0]) or [])[-1:]:
            return None  # rows stay what they are: sums are where `reshapes_behind` puts them
        first = made_by(tensor, *RESHAPES)
        product = first.inputs[0] if first is not None else None
        if product is None or not terms or not _is_of_two(product):
            return None
        if not same_dims(dims(product), dims(node.outputs[0])) or not _fill(terms, whole):
            return None
        reason = why_any_shared(graph, (product, tensor, *between))
        return refusal(node, reason) or _Sum(node, product, terms[::-1])

    def rewrite(self, editor: GraphEditor, match: _Sum) -> None:
        """Write the sum of the terms, the Reshape of that, and the sum with the product."""
        parts, output = NodeParts(editor, match.last), match.last.outputs[0]
        total = match.terms[0]
        for term in match.terms[1:]:
            shape = _broadcast([total, term])
            total = parts.add("Add", total, term, like=match.last.inputs[0], shape=shape)
        rows = parts.reshaped(total, dims(output) or [])
        editor.replace(output, parts.add("Add", match.product, rows, like=output))


def _sides(added: gs.Node, whole: Dims | None) -> tuple[gs.Tensor, gs.Tensor]:
    """The operand of a sum that has its shape, as a reshaped product or a sum with one has, and the other."""
    first, second = added.inputs
    is_first = same_dims(dims(first), whole) and made_by(first, "Add", *RESHAPES) is not None
    return (first, second) if is_first else (second, first)


def _is_of_two(tensor: gs.Tensor) -> bool:
    """Whether a tensor is a product of two that are computed, or a part of one."""
    while (part := made_by(tensor, "Slice")) is not None:
        tensor = part.inputs[0]
    product = made_by(tensor, "MatMul")
    return product is not None and not any(isinstance(t, gs.Constant) for t in product.inputs)


def _fill(terms: list[gs.Tensor], whole: Dims | None) -> bool:
    """Whether the sum of the terms has an element for each of the product, and is computed."""
    if all(isinstance(term, gs.Constant) for term in terms):
        return False  # `reshapes_around` gives constants another shape
    return whole is not None and same_dims(_broadcast(terms), whole)


def _broadcast(terms: list[gs.Tensor]) -> Dims | None:
    """The shape of a sum; None where a size is not known."""
    shapes = [dims(term) for term in terms]
    if any(shape is None for shape in shapes):
        return None
    rank = max(len(shape or ()) for shape in shapes)
    padded = [[*[1] * (rank - len(shape or ())), *(shape or ())] for shape in shapes]
    found: Dims = []
    for sizes in zip(*padded, strict=True):
        large = {size for size in sizes if size != 1}
        if len(large) > 1 or None in large:
            return None
        found.append(large.pop() if large else 1)
    return found
