"""Pieces of a body that holds more than one anchor."""

from collections.abc import Collection
from dataclasses import replace

import onnx_graphsurgeon as gs

from wpk.lowering.body import OperatorBody


def until(body: OperatorBody, output: str, given: str = "") -> OperatorBody:
    """Return the part of a body that makes ``output`` from ``given``."""
    wanted, nodes = {output}, list[gs.Node]()
    for node in reversed(body.nodes):
        if any(t.name in wanted - {given} for t in node.outputs):
            nodes.insert(0, node)
            wanted |= {t.name for t in node.inputs if t.name}
    return replace(body, nodes=tuple(nodes), output=output)


def two_products(body: OperatorBody, products: Collection[str]) -> tuple[gs.Node, gs.Node]:
    """Return the product of a body that comes first, and that of what it gives.

    Args:
        body: With two of them.
        products: Operators that are products.
    """
    one, other = (node for node in body.nodes if node.op in products)
    before = {node.name for node in until(body, other.outputs[0].name).nodes}
    return (one, other) if one.name in before else (other, one)
