"""One canonical form for each matrix product.

    MatMul(a, b), both of two dimensions        ->  Gemm(a, b)
    Gemm(Transpose(a), b), Gemm(a, Transpose(b))  ->  Gemm(a, b, transA, transB flipped)
    Reshape(Gemm(Reshape(x), W, c))             ->  MatMul(x, W') + c     around leading dimensions
                                                    MatMul(Reshape(x), W') + c    where x has heads

So two-dimensional products are Gemm, with their bias inside; products with more dimensions are
MatMul, with an Add of a constant vector behind as their bias.
"""

import math

import numpy as np
import onnx_graphsurgeon as gs

from wpk.graph_passes.core.base import GraphPass, PassResult
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
from wpk.graph_passes.fold.linear_operator import channel_vector, output_channels
from wpk.graph_passes.movement.reshape_chains import permutation


class MatMulToGemm(GraphPass):
    """Make Gemm of two-dimensional products, and let it read transposed matrices in place."""

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


class GemmBetweenReshapes(GraphPass):
    """Replace Reshape, Gemm, Reshape by a MatMul in more dimensions and an Add."""

    name = "gemm-between-reshapes"

    def apply(self, graph: gs.Graph) -> PassResult:
        """Rewrite where the reshapes only merge and split the leading dimensions."""
        result = PassResult()
        editor = GraphEditor(graph)
        for last in live_nodes(graph, "Reshape"):
            gemm = made_by(last.inputs[0], "Gemm")
            first = made_by(gemm.inputs[0], "Reshape", "Flatten") if gemm is not None else None
            if gemm is None or first is None:
                continue
            reason = _why_not(graph, first, gemm, last)
            if reason is not None:
                result.refuse(gemm, reason)
                continue
            _rewrite(editor, first, gemm, last)
            result.rewritten += 1
        return result


def _why_not(graph: gs.Graph, first: gs.Node, gemm: gs.Node, last: gs.Node) -> str | None:
    source, output = dims(first.inputs[0]), dims(last.outputs[0])
    if source is None or output is None or len(source) < 3:
        return f"'{first.inputs[0].name}' is not known to have more than two dimensions"
    lead = len(output) - 1
    if not same_dims(source[:lead], output[:lead]):
        return f"the leading dimensions change from {source[:lead]} to {output[:lead]}"
    weight = floats(gemm.inputs[1])
    if weight is None:
        return f"weight '{gemm.inputs[1].name}' is not a constant of floats"
    inner, outer = weight.shape if not gemm.attrs.get("transB", 0) else weight.shape[::-1]
    rest = [size for size in source[lead:] if isinstance(size, int)]
    joined = len(rest) == len(source) - lead and math.prod(rest) == inner
    if not joined or output[-1] != outer or gemm.attrs.get("transA", 0):
        return "the reshapes take the last dimension apart"
    bias = given(gemm, 2)
    if bias is not None:
        vector = channel_vector(bias, 2, -1, output_channels(gemm))
        if isinstance(vector, str):
            return vector
    return why_shared(graph, gemm.outputs[0])


def _rewrite(editor: GraphEditor, first: gs.Node, gemm: gs.Node, last: gs.Node) -> None:
    old, output = gemm.inputs[1], last.outputs[0]
    weight = floats(old)
    if weight is None:
        raise ValueError("ask _why_not first")
    alpha = float(gemm.attrs.get("alpha", 1.0))
    if gemm.attrs.get("transB", 0):
        weight = weight.T
    new = editor.constant(f"{old.name}_matrix", weight * alpha, old.dtype)
    product = editor.add("MatMul", [_joined(editor, first, output), new], like=output)
    bias = given(gemm, 2)
    if bias is not None:
        vector = channel_vector(bias, 2, -1, output_channels(gemm))
        offsets = np.asarray(vector, np.float64) * float(gemm.attrs.get("beta", 1.0))
        constant = editor.constant(f"{bias.name}_vector", offsets, old.dtype)
        product = editor.add("Add", [product, constant], like=output)
    editor.replace(output, product)


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
