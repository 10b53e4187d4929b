"""One canonical form for each matrix product.

    MatMul(a, b), both of two dimensions        ->  Gemm(a, b)
    Gemm(Transpose(a), b), Gemm(a, Transpose(b))  ->  Gemm(a, b, transA, transB flipped)
    Reshape(Gemm(Reshape(x), W, c))             ->  MatMul(x, W') + c     around leading dimensions
                                                    MatMul(Reshape(x), W') + c    where x has heads

So two-dimensional products are Gemm, with their bias inside; products with more dimensions are
MatMul, with an Add of a constant vector behind as their bias.
"""

import math
from dataclasses import dataclass

import numpy as np
import onnx_graphsurgeon as gs

from wpk.graph_passes.core.base import GraphPass, PassResult, Refusal
from wpk.graph_passes.core.editor import GraphEditor
from wpk.graph_passes.core.query import (
    dims,
    floats,
    given,
    live_nodes,
    made_by,
    rank,
    same_dims,
    why_shared,
)
from wpk.graph_passes.core.rule import Rule
from wpk.graph_passes.fold.linear_operator import channel_vector, output_channels
from wpk.graph_passes.movement.reshape_chains import permutation


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
    """A Reshape, the Gemm that reads it, and the Reshape that reads the Gemm."""

    first: gs.Node
    gemm: gs.Node
    last: gs.Node


class GemmBetweenReshapes(Rule[_Sandwich]):
    """Replace Reshape, Gemm, Reshape by a MatMul in more dimensions and an Add."""

    name = "gemm-between-reshapes"
    ops = ("Reshape",)

    def match(self, graph: gs.Graph, node: gs.Node) -> _Sandwich | Refusal | None:
        """Match where the reshapes only merge and split the leading dimensions."""
        gemm = made_by(node.inputs[0], "Gemm")
        first = made_by(gemm.inputs[0], "Reshape", "Flatten") if gemm is not None else None
        if gemm is None or first is None:
            return None
        return _why_not(graph, first, gemm, node) or _Sandwich(first, gemm, node)

    def rewrite(self, editor: GraphEditor, match: _Sandwich) -> None:
        """Write the MatMul, and the Add of the bias behind it."""
        gemm, output = match.gemm, match.last.outputs[0]
        old = gemm.inputs[1]
        weight = floats(old)
        if weight is None:
            raise ValueError("ask _why_not first")
        alpha = float(gemm.attrs.get("alpha", 1.0))
        if gemm.attrs.get("transB", 0):
            weight = weight.T
        new = editor.constant(f"{old.name}_matrix", weight * alpha, old.dtype)
        product = editor.add("MatMul", [_joined(editor, match.first, output), new], like=output)
        bias = given(gemm, 2)
        if bias is not None:
            vector = channel_vector(gemm, bias, 2, -1, output_channels(gemm))
            offsets = np.asarray(vector, np.float64) * float(gemm.attrs.get("beta", 1.0))
            constant = editor.constant(f"{bias.name}_vector", offsets, old.dtype)
            product = editor.add("Add", [product, constant], like=output)
        editor.replace(output, product)


def _why_not(graph: gs.Graph, first: gs.Node, gemm: gs.Node, last: gs.Node) -> Refusal | None:
    source, output = dims(first.inputs[0]), dims(last.outputs[0])
    if source is None or output is None or len(source) < 3:
        reason = f"'{first.inputs[0].name}' is not known to have more than two dimensions"
        return Refusal(gemm.name, reason)
    lead = len(output) - 1
    if not same_dims(source[:lead], output[:lead]):
        reason = f"the leading dimensions change from {source[:lead]} to {output[:lead]}"
        return Refusal(gemm.name, reason)
    weight = floats(gemm.inputs[1])
    if weight is None:
        return Refusal(gemm.name, f"weight '{gemm.inputs[1].name}' is not a constant of floats")
    inner, outer = weight.shape if not gemm.attrs.get("transB", 0) else weight.shape[::-1]
    rest = [size for size in source[lead:] if isinstance(size, int)]
    joined = len(rest) == len(source) - lead and math.prod(rest) == inner
    if not joined or output[-1] != outer or gemm.attrs.get("transA", 0):
        return Refusal(gemm.name, "the reshapes take the last dimension apart")
    bias = given(gemm, 2)
    if bias is not None:
        vector = channel_vector(gemm, bias, 2, -1, output_channels(gemm))
        if isinstance(vector, Refusal):
            return vector
    reason = why_shared(graph, gemm.outputs[0])
    return None if reason is None else Refusal(gemm.name, reason)


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
