"""Decide the shapes of a model's inputs: ``--shapes``, and the free dimensions that may remain.

Kernels take one extent at run time, into which the free dimensions of a tensor must join: a batch, or a
batch and a sequence behind it. Where they do not, lowering refuses the node in words.
"""

from collections.abc import Mapping, Sequence

import onnx

from wpk.errors import GraphError
from wpk.shape_ranges import GRAMMAR, ShapeRange, as_range, range_words

MAX_FREE = 4
"""Free dimensions of a model."""


def bind_shapes(graph: onnx.GraphProto, shapes: Mapping[str, Sequence[object]]) -> None:
    """Write ``shapes`` into the graph's inputs, and name the dimensions that stay free.

    Sizes recorded for the other tensors are dropped where they may no longer hold.

    Raises:
        GraphError: A name or rank does not fit, a given size contradicts a fixed one, or more
            dimensions are free than may be.
    """
    inputs = {info.name: info for info in graph.input}
    unknown = sorted(set(shapes) - set(inputs))
    if unknown:
        raise GraphError(
            f"--shapes names {unknown[0]!r}, which is no input of the model",
            fix=f"the inputs are {', '.join(sorted(inputs)) or '(none)'}",
        )
    bound: dict[str, int] = {}
    for name, given in shapes.items():
        bound.update(_bind(inputs[name], as_range(name, given)))
    for info in (*graph.input, *graph.output):
        _decide(info, bound)
    if shapes:
        del graph.value_info[:]
    _check_free(graph)


def _bind(info: onnx.ValueInfoProto, given: ShapeRange) -> dict[str, int]:
    """Set one input's sizes; return the symbols that this decided."""
    tensor, sizes = info.type.tensor_type, given[0]
    if not tensor.HasField("shape"):
        for _ in sizes:
            tensor.shape.dim.add()
    if len(tensor.shape.dim) != len(sizes):
        raise GraphError(
            f"--shapes gives input '{info.name}' {len(sizes)} dimensions; the model's has "
            f"{_words(info)}",
            fix="give one size for each dimension of the model's input",
        )
    bound, words = {}, _words(info)
    for dim, several in zip(tensor.shape.dim, zip(*given, strict=True), strict=True):
        fixed = dim.HasField("dim_value") and dim.dim_value > 0
        size = several[0] if len(set(several)) == 1 else -1
        if fixed and (size not in (-1, dim.dim_value) or len(set(several)) > 1):
            raise GraphError(
                f"--shapes gives input '{info.name}' {range_words(given)}; the model fixes "
                f"it to {words}",
                fix="give the fixed sizes as they are, or export the model with free dimensions",
            )
        if size == 0:
            raise GraphError(
                f"--shapes gives input '{info.name}' an empty dimension", fix=f"write {GRAMMAR}"
            )
        if size > 0 and not fixed:
            if dim.dim_param:
                bound[dim.dim_param] = size
            dim.dim_value = size
    return bound


def _decide(info: onnx.ValueInfoProto, bound: Mapping[str, int]) -> None:
    """Replace bound symbols; an output's other symbols are for shape inference to find."""
    for dim in info.type.tensor_type.shape.dim:
        if dim.dim_param in bound:
            dim.dim_value = bound[dim.dim_param]


def _check_free(graph: onnx.GraphProto) -> None:
    """Name the free dimensions, and refuse too many."""
    names = dict[str, None]()
    for info in graph.input:
        tensor = info.type.tensor_type
        if not tensor.HasField("shape"):
            raise _undecided(info, "has no shape")
        for axis, dim in enumerate(tensor.shape.dim):
            if dim.HasField("dim_value") and dim.dim_value >= 0:
                continue
            if not dim.dim_param:
                dim.dim_param = "batch" if axis == 0 else f"{info.name}.{axis}"
            names[dim.dim_param] = None
    if len(names) > MAX_FREE:
        raise GraphError(
            f"the inputs have {len(names)} free dimensions: {', '.join(map(repr, names))}; "
            f"at most {MAX_FREE} may stay free",
            fix=f"decide them with --shapes {GRAMMAR}",
        )


def _undecided(info: onnx.ValueInfoProto, what: str) -> GraphError:
    dims = info.type.tensor_type.shape.dim
    example = "x".join(str(d.dim_value) if d.dim_value > 0 else "1" for d in dims) or "1x3x224x224"
    return GraphError(
        f"input '{info.name}' {what}",
        fix=f"decide its sizes, e.g. --shapes {info.name}:{example}",
    )


def _words(info: onnx.ValueInfoProto) -> str:
    dims = info.type.tensor_type.shape.dim
    sizes = (str(d.dim_value) if d.HasField("dim_value") else d.dim_param or "?" for d in dims)
    return f"[{', '.join(sizes)}]"
