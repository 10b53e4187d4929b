"""One canonical form for each matrix product.

    MatMul(a, b), both of two dimensions        ->  Gemm(a, b)
    Gemm(Transpose(a), b), Gemm(a, Transpose(b))  ->  Gemm(a, b, transA, transB flipped)
    Reshape(Gemm(Reshape(x), W, c))             ->  MatMul(x, W') + c     around leading dimensions
                                                    MatMul(Reshape(x), W') + c    where x has heads

So two-dimensional products are Gemm, with their bias inside; products with more dimensions are
MatMul, with an Add of a constant vector behind as their bias.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor, GraphPass, PassResult, Refusal, Rule, refusal
from wpk.graph_passes.core.exact import derived_constant, exact_values
from wpk.graph_passes.core.query import (
    dims,
    given,
    live_nodes,
    made_by,
    rank,
    same_dims,
    why_shared,
)
from wpk.graph_passes.fold.linear_operator import (
    Vector,
    channel_vector,
    float_weight,
    output_channels,
    why_not_linear,
)
from wpk.graph_passes.movement.chains.reshape_chains import permutation


class MatMulToGemm(GraphPass):
    """Make Gemm of two-dimensional products, and let it read transposed matrices in place.

    The pass has its own loops, since a Gemm may take two transposes, each of which is a rewrite.
    """

    name = "matmul-to-gemm"

    def apply(self, graph: gs.Graph) -> PassResult:
        """Rewrite MatMul nodes first, then the transposes that Gemm nodes read."""
        result = PassResult()
        editor = GraphEditor(graph)
        for node in live_nodes(graph, "MatMul"):
            ranks = [rank(tensor) for tensor in node.inputs]
            if None in ranks:
                result.refuse(node, f"the rank of an operand of '{node.name}' is unknown")
            elif ranks == [2, 2]:
                output = node.outputs[0]
                editor.replace(output, editor.add("Gemm", list(node.inputs), like=output))
                result.rewritten += 1
        for node in live_nodes(graph, "Gemm"):
            for index, flag in ((0, "transA"), (1, "transB")):
                transpose = made_by(node.inputs[index], "Transpose")
                if transpose is not None and permutation(transpose) == [1, 0]:
                    inputs = list(node.inputs)
                    inputs[index] = transpose.inputs[0]
                    node.inputs = inputs
                    node.attrs[flag] = 1 - int(node.attrs.get(flag, 0))
                    result.rewritten += 1
        return result


@dataclass(frozen=True)
class _Sandwich:
    """A Reshape, the Gemm that reads it with its weights and bias, and the Reshape behind."""

    first: gs.Node
    gemm: gs.Node
    last: gs.Node
    weight: Vector
    bias: Vector | None


class GemmBetweenReshapes(Rule[_Sandwich]):
    """Replace Reshape, Gemm, Reshape by a MatMul in more dimensions and an Add."""

    name = "gemm-between-reshapes"
    ops = ("Reshape",)
    is_choice = True
    choice_words = "a product keeps the leading dimensions that a model collapses around it"

    def decided_over(self, match: _Sandwich) -> Sequence[gs.Node]:
        """Return the reshapes and the product between them."""
        return match.first, match.gemm, match.last

    def match(self, graph: gs.Graph, node: gs.Node) -> _Sandwich | Refusal | None:
        """Match where the reshapes only merge and split the leading dimensions."""
        gemm = made_by(node.inputs[0], "Gemm")
        first = made_by(gemm.inputs[0], "Reshape", "Flatten") if gemm is not None else None
        if gemm is None or first is None:
            return None
        reason = _why_not_leading(first, node)
        if reason is not None:
            return Refusal(gemm.name, reason)
        reason = why_not_linear(gemm)
        if reason is not None:
            return Refusal(gemm.name, reason)
        weight = float_weight(gemm)
        weight = weight.T if gemm.attrs.get("transB", 0) else weight
        if gemm.attrs.get("transA", 0) or not _keep_last(first, node, weight):
            return Refusal(gemm.name, "the reshapes take the last dimension apart")
        bias = given(gemm, 2)
        vector = None
        if bias is not None:
            vector = channel_vector(gemm, bias, 2, -1, output_channels(gemm))
        if isinstance(vector, Refusal):
            return vector
        reason = why_shared(graph, gemm.outputs[0])
        return refusal(gemm, reason) or _Sandwich(first, gemm, node, weight, vector)

    def rewrite(self, editor: GraphEditor, match: _Sandwich) -> None:
        """Write the MatMul, and the Add of the bias behind it."""
        gemm, output = match.gemm, match.last.outputs[0]
        old = gemm.inputs[1]
        alpha = float(gemm.attrs.get("alpha", 1.0))
        turned = bool(gemm.attrs.get("transB", 0))
        new = derived_constant(
            editor.new_name(f"{old.name}_matrix"),
            ("matrix of a Gemm", turned, alpha),
            (exact_values(old),),
            lambda: np.ascontiguousarray(match.weight * alpha),
            old.dtype,
        )
        product = editor.add("MatMul", [_joined(editor, match.first, output), new], like=output)
        if match.bias is not None:
            constant = editor.constant(f"{gemm.inputs[2].name}_vector", match.bias, old.dtype)
            product = editor.add("Add", [product, constant], like=output)
        editor.replace(output, product)


def _why_not_leading(first: gs.Node, last: gs.Node) -> str | None:
    """Say why the leading dimensions are not those before the reshapes."""
    source, output = dims(first.inputs[0]), dims(last.outputs[0])
    if source is None or output is None or len(source) < 3:
        return f"'{first.inputs[0].name}' is not known to have more than two dimensions"
    lead = len(output) - 1
    if not same_dims(source[:lead], output[:lead]):
        return f"the leading dimensions change from {source[:lead]} to {output[:lead]}"
    return None


def _keep_last(first: gs.Node, last: gs.Node, weight: Vector) -> bool:
    """Whether what follows the leading dimensions is what the product sums over, and gives."""
    source, output = dims(first.inputs[0]) or [], dims(last.outputs[0]) or []
    rest = source[len(output) - 1 :]
    known = [size for size in rest if isinstance(size, int)]
    inner, outer = weight.shape
    return len(known) == len(rest) and math.prod(known) == inner and output[-1] == outer


def _joined(editor: GraphEditor, first: gs.Node, output: gs.Tensor) -> gs.Tensor:
    """The input with the dimensions of ``output`` but the last, and all others in one."""
    source, lead = first.inputs[0], (dims(output) or [])[:-1]
    shape = dims(source) or []
    if len(shape) == len(lead) + 1:
        return source
    inner = math.prod(size for size in shape[len(lead) :] if isinstance(size, int))
    target = [0 if isinstance(size, str) else size for size in lead]
    sizes = editor.constant(f"{first.name}_joined", np.array([*target, inner], np.int64))
    return editor.add("Reshape", [source, sizes], like=source, shape=[*lead, inner])
