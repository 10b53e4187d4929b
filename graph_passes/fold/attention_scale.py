"""Move scalar factors to where they cost nothing: into weights, or behind a matrix product.

    T(L(x)) * s              ->  T(L(x) * s)             T: reshapes and transposes; then W * s
    MatMul(a * s, T(b * t))  ->  MatMul(a, T(b)) * (s t)

Attention scales queries and keys by d^(-1/4) each, or their product by d^(-1/2), behind the reshapes
into heads. The first form ends in the weights of the projections (`constants_into_weights`), the
second in the product's epilogue.
"""

from dataclasses import dataclass

import numpy as np
import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor, GraphPass, PassResult, Refusal, Rule, refusal
from wpk.graph_passes.core.query import (
    floats,
    given,
    holds_floats,
    live_nodes,
    made_by,
    rank,
    split_constant,
    why_any_shared,
    why_not_replace,
)
from wpk.graph_passes.fold.linear_operator import LINEAR_OPS
from wpk.graph_passes.movement.chains.views import viewed, views_before


@dataclass(frozen=True)
class _ScaledChain:
    """A factor behind reshapes and transposes, last first, of a product with constants."""

    node: gs.Node
    variable: gs.Tensor
    factor: float
    chain: list[gs.Node]


class ScaleIntoProjection(Rule[_ScaledChain]):
    """Move a scalar factor up through reshapes and transposes to a product with constants."""

    name = "scale-into-projection"
    ops = ("Mul", "Div")

    def match(self, graph: gs.Graph, node: gs.Node) -> _ScaledChain | Refusal | None:
        """Match; a factor whose chain starts elsewhere is no match."""
        found = scalar_factor(node)
        if found is None:
            return None
        variable, factor = found
        chain = views_before(variable)[::-1]
        if not chain or not _is_projection(chain[-1].inputs[0]):
            return None
        moved = [*(view.outputs[0] for view in chain), chain[-1].inputs[0]]
        reason = why_any_shared(graph, moved) or why_not_replace(graph, node.outputs[0], variable)
        return refusal(node, reason) or _ScaledChain(node, variable, factor, chain)

    def rewrite(self, editor: GraphEditor, match: _ScaledChain) -> None:
        """Multiply what the chain starts from; what it makes on its way is renamed."""
        first = match.chain[-1]
        source = first.inputs[0]
        factor = _constant(editor, match.node, match.factor)
        scaled = editor.add("Mul", [source, factor], like=source)
        first.inputs = [scaled, *list(first.inputs)[1:]]
        for moved in match.chain:
            editor.rename(moved.outputs[0], f"{moved.outputs[0].name}_scaled")
        editor.replace(match.node.outputs[0], match.variable)


class ScaleBehindProduct(GraphPass):
    """Move the scalar factors of both operands of a MatMul behind it, as one.

    The pass has its own loop, since one operand may be refused and the other moved.
    """

    name = "scale-behind-product"

    def apply(self, graph: gs.Graph) -> PassResult:
        """Move factors of operands that only the product reads."""
        result = PassResult()
        editor = GraphEditor(graph)
        for product in live_nodes(graph, "MatMul"):
            if any(isinstance(tensor, gs.Constant) for tensor in product.inputs):
                continue
            factor, moved = 1.0, False
            inputs = list(product.inputs)
            for index, operand in enumerate(inputs):
                chain = views_before(operand)
                scaled = viewed(operand)
                node = made_by(scaled, "Mul", "Div")
                found = scalar_factor(node) if node is not None else None
                if node is None or found is None or (chain and _is_projection(viewed(found[0]))):
                    continue
                reason = why_any_shared(graph, [scaled, *(view.outputs[0] for view in chain)])
                if reason is not None:
                    result.refuse(node, reason)
                    continue
                if chain:
                    _read_unscaled(editor, chain, found[0])
                else:
                    inputs[index] = found[0]
                factor *= found[1]
                moved = True
            if not moved:
                continue
            output = product.outputs[0]
            plain = editor.add("MatMul", inputs, like=output)
            times = editor.add("Mul", [plain, _constant(editor, product, factor)], like=output)
            editor.replace(output, times)
            result.rewritten += 1
        return result


def _read_unscaled(editor: GraphEditor, chain: list[gs.Node], source: gs.Tensor) -> None:
    """Let views read what a factor was applied to; what they make is renamed."""
    chain[0].inputs = [source, *list(chain[0].inputs)[1:]]
    for view in chain:
        editor.rename(view.outputs[0], f"{view.outputs[0].name}_unscaled")


def scalar_factor(node: gs.Node) -> tuple[gs.Tensor, float] | None:
    """Read ``node`` as a variable times one number; None when it is something else."""
    sides = split_constant(node)
    if sides is None or node.op not in ("Mul", "Div"):
        return None
    variable, constant = sides
    exact, dimensions = floats(constant), rank(variable)
    if exact is None or dimensions is None or exact.size != 1 or exact.ndim > dimensions:
        return None
    value = float(exact.reshape(()))
    if node.op == "Mul":
        return variable, value
    return (variable, 1.0 / value) if node.inputs[0] is variable and value else None


def _constant(editor: GraphEditor, node: gs.Node, factor: float) -> gs.Constant:
    dtype = node.outputs[0].dtype
    return editor.constant(f"{node.name}_factor", np.array(factor), dtype)


def _is_projection(tensor: gs.Tensor) -> bool:
    """Whether weights can take a factor of ``tensor``: L(x), or MatMul(x, W) + b."""
    node = made_by(tensor, *LINEAR_OPS)
    bias_add = made_by(tensor, "Add")
    if node is None and bias_add is not None:
        sides = split_constant(bias_add)
        node = made_by(sides[0], "MatMul") if sides is not None else None
    return node is not None and holds_floats(given(node, 1))
