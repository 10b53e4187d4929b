"""Whether the body of a Loop may end it."""

from collections.abc import Collection, Mapping

import onnx
from onnx import TensorProto, numpy_helper

_PASSED_ON = ("Identity", "Cast")


def may_end(body: onnx.GraphProto, constants: Mapping[str, TensorProto]) -> bool:
    """Tell whether a Loop's body may give a condition that does not hold, where the one before did.

    It cannot where it gives back the very condition that it was given, or a constant that holds.

    Args:
        body: The body.
        constants: Those that it may read from outside.
    """
    makers = {name: node for node in body.node for name in node.output}
    known = {**constants, **{each.name: each for each in body.initializer}}
    return not _holds(body.output[0].name, body.input[1].name, makers, known)


def _holds(
    name: str,
    before: str,
    makers: Mapping[str, onnx.NodeProto],
    known: Mapping[str, TensorProto],
) -> bool:
    seen: Collection[str] = set()
    while name != before:
        node = makers.get(name)
        if node is None:
            return name in known and bool(numpy_helper.to_array(known[name]).all())
        if node.op_type == "Constant":
            values = [each.t for each in node.attribute if each.name == "value"]
            return bool(values) and bool(numpy_helper.to_array(values[0]).all())
        if node.op_type not in _PASSED_ON or name in seen:
            return False
        seen = {*seen, name}
        name = node.input[0]
    return True
