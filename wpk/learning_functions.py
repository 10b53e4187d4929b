"""Operators of ONNX's domain for machine learning that ONNX's own operators say, as local functions.

Exporters of scikit-learn write classifiers of any kind with one of them, which picks the classes' names.
"""

import onnx

DOMAIN = "ai.onnx.ml"

OLDEST_OPSET = 13
"""Of ONNX's own operators in the functions."""

_BODIES = {
    # Elements along the last axis; one axis alone becomes a row.
    "ArrayFeatureExtractor": """(x, y) => (z) {
        zero = Constant<value = int64[1] {0}>()  one = Constant<value = int64[1] {1}>()
        rest = Constant<value = int64[1] {-1}>()
        end = Constant<value = int64[1] {9223372036854775807}>()
        shape = Shape(x)  rank = Shape(shape)  last = Sub(rank, one)
        outer = Slice(shape, zero, last)  rows = Concat<axis = 0>(one, outer)
        first = Min(last, one)  kept = Slice(rows, first, end)
        target = Concat<axis = 0>(kept, rest)
        places = Reshape(y, rest)  picked = Gather<axis = -1>(x, places)
        z = Reshape(picked, target)
    }""",
}


def is_written(node: onnx.NodeProto, opset: int) -> bool:
    """Whether ONNX's own operators say what a node does."""
    return node.domain == DOMAIN and node.op_type in _BODIES and opset >= OLDEST_OPSET


def write_functions(model: onnx.ModelProto, opset: int) -> None:
    """Add a function for each such operator, so that inlining the model's functions writes them all.

    Args:
        model: Edited; whole and checked.
        opset: Its version of ONNX's own operators.
    """
    there = {(function.domain, function.name) for function in model.functions}
    for name, body in _BODIES.items():
        if (DOMAIN, name) not in there and opset >= OLDEST_OPSET:
            head = f'<opset_import: ["" : {opset}], domain: "{DOMAIN}"> {name}'
            model.functions.append(onnx.parser.parse_function(f"{head} {body}"))
