"""Pieces of a body that holds more than one anchor."""

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
