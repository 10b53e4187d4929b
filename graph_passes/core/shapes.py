"""Give every tensor of a graph its type and shape.

Wraps `onnx.shape_inference` on a copy of the graph without its weights: only constants small enough
to be shape arithmetic keep their values, the others enter as typed inputs, so that inference costs
milliseconds whatever the model weighs. Local functions are inferred through. Where all sizes are numbers,
what was inferred of equal nodes before is not inferred again (`wpk.graph_passes.core.known_types`).

Inference loses a symbol in arithmetic: Reshape([batch, 6, 8], [-1, 6, 2, 4]) gets an open dimension.
So where dimensions stay open it runs again with a number in each symbol's place; a dimension that
comes out as one of these numbers is that symbol.
"""

import math
from collections.abc import Callable, Iterator, Mapping

import onnx
import onnx_graphsurgeon as gs
from onnx import shape_inference

from wpk.errors import GraphError
from wpk.graph_passes.core.carried_states import carried_states
from wpk.graph_passes.core.free_parts import free_part
from wpk.graph_passes.core.known_types import (
    MAX_SHAPE_VALUES,
    KnownTypes,
    UnknownTypeError,
    typed_input,
)
from wpk.graph_passes.core.query import Dims, dims, integers, is_op
from wpk.graph_passes.core.sizes import Size, known_sizes, size_of, sizes_in

# Stand for free dimensions: primes above every size in a model that could cut one off, so that nothing
# but the dimension itself comes out as this number; 64 bits hold the product of two with a tensor.
_PROBES = (1_000_003, 1_000_033, 1_000_037, 1_000_039)


def has_all_sizes(graph: gs.Graph) -> bool:
    """Whether types and shapes of all tensors that nodes make are known, and all sizes are numbers."""
    return all(
        t.dtype is not None and t.shape is not None and all(isinstance(n, int) for n in t.shape)
        for node in graph.nodes
        for t in node.outputs
        if not t.is_empty()
    )


def infer_shapes(graph: gs.Graph, known: KnownTypes | None = None) -> None:
    """Fill in dtype and shape of every tensor of ``graph`` that inference can decide.

    Numbers win over symbols, and symbols of the model (a free batch) over inference's invented
    ones, which are dropped. A tensor that inference says nothing about keeps what it had. Nothing
    is raised for a node that inference cannot follow: its outputs stay as they were.

    Args:
        graph: Its nodes are in an order in which they can run.
        known: What was inferred of nodes before, which grows; by default nothing.
    """
    if known is not None:
        try:
            known.fill(graph, _by_onnx)
        except UnknownTypeError:
            pass  # dimensions are free, or follow from values that nodes compute
        else:
            return
    skeleton = _skeleton(graph)
    inferred, free = _inferred(skeleton), set(_symbols(graph.inputs))
    made = [t for node in graph.nodes for t in node.outputs if isinstance(t, gs.Variable)]
    for tensor in made:
        if tensor.name in inferred:
            _refine(tensor, inferred[tensor.name], free)
    if 0 < len(free) <= len(_PROBES) and any(None in (tensor.shape or ()) for tensor in made):
        probes = dict(zip(sorted(free), _PROBES, strict=False))
        # Without values of shape arithmetic: Range(batch) would become a million of them.
        probed = _inferred(_sized(skeleton, probes), data_prop=False)
        for tensor in made:
            if None in (tensor.shape or ()) and tensor.name in probed:
                _name_probes(tensor, probed[tensor.name], probes)


def proven_shapes(graph: gs.Graph) -> dict[str, Dims]:
    """Return the shapes that inference finds by itself; what the model only claims is left out.

    A claim may be wrong behind an operator that decides its output's shape by numbers (NonZero). Dimensions
    that are not known are None; a tensor of which not even the rank is known is missing.
    """
    skeleton, known = _skeleton(graph), set(_symbols(graph.inputs))
    found = {name: _dims_of(kind, known) for name, kind in _inferred(skeleton).items()}
    if 0 < len(known) <= len(_PROBES):
        probes = dict(zip(sorted(known), _PROBES, strict=False))
        names = {number: name for name, number in probes.items()}
        for name, kind in _inferred(_sized(skeleton, probes), data_prop=False).items():
            sizes = _dims_of(kind, known)  # other numbers may be made of these: twice the batch
            named: Dims = [names.get(n) if isinstance(n, int) else None for n in sizes or ()]
            found[name] = _merged(found.get(name), None if sizes is None else named)
    return {name: dims for name, dims in found.items() if dims is not None}


def _dims_of(proto: onnx.TypeProto, known: set[str]) -> Dims | None:
    if not proto.HasField("tensor_type") or not proto.tensor_type.HasField("shape"):
        return None
    return [_dim(dim, known) for dim in proto.tensor_type.shape.dim]


def _merged(one: Dims | None, other: Dims | None) -> Dims | None:
    """What two looks at a shape know together."""
    if one is None or other is None or len(one) != len(other):
        return one if one is not None else other
    return [b if a is None else a for a, b in zip(one, other, strict=True)]


def _inferred(model: onnx.ModelProto, *, data_prop: bool = True) -> dict[str, onnx.TypeProto]:
    """Types of the tensors that ONNX's inference knows, by name, with those that Loops carry."""
    told: set[str] = set()
    while True:
        found = _by_onnx(model, data_prop=data_prop)
        carried = (info for info in carried_states(model, found) if info.name not in told)
        new = [info for info in carried if _is_open(found.get(info.name))]
        if not new:
            return found
        told |= {info.name for info in new}
        outputs = {info.name: info for info in model.graph.output}
        for info in new:
            if info.name in outputs:
                outputs[info.name].type.CopyFrom(info.type)
            else:
                model.graph.value_info.append(info)


def _is_open(kind: onnx.TypeProto | None) -> bool:
    """Whether anything of a shape is not known."""
    if kind is None or not kind.tensor_type.HasField("shape"):
        return True
    return not all(dim.HasField("dim_value") for dim in kind.tensor_type.shape.dim)


def _by_onnx(model: onnx.ModelProto, *, data_prop: bool = True) -> dict[str, onnx.TypeProto]:
    try:
        result = shape_inference.infer_shapes(model, strict_mode=False, data_prop=data_prop)
    except (shape_inference.InferenceError, RuntimeError, ValueError) as error:
        raise GraphError(
            f"ONNX cannot infer shapes: {str(error)[:300]}",
            fix="export the model again; ONNX Runtime should refuse it too",
        ) from error
    return {info.name: info.type for info in [*result.graph.value_info, *result.graph.output]}


def _sized(model: onnx.ModelProto, probes: Mapping[str, int]) -> onnx.ModelProto:
    """Write numbers for free dimensions into the model's inputs."""
    for info in (*model.graph.input, *model.graph.value_info):
        for dim in info.type.tensor_type.shape.dim:
            if dim.dim_param in probes:
                dim.dim_value = probes[dim.dim_param]
    return model


def _name_probes(tensor: gs.Variable, proto: onnx.TypeProto, probes: Mapping[str, int]) -> None:
    """Name the open dimensions that are free ones."""
    names = {number: name for name, number in probes.items()}
    sizes = [dim.dim_value for dim in proto.tensor_type.shape.dim]
    if len(sizes) != len(tensor.shape):
        return
    tensor.shape = [
        names.get(size) if dim is None else dim
        for dim, size in zip(tensor.shape, sizes, strict=True)
    ]


def _skeleton(graph: gs.Graph) -> onnx.ModelProto:
    """Export ``graph`` with big constants as inputs, and no remembered intermediate shapes."""
    exporter = gs.exporters.onnx_exporter
    initializers = []
    inputs = [exporter.OnnxExporter.export_value_info_proto(t, True) for t in graph.inputs]
    for tensor in graph.tensors().values():
        if not isinstance(tensor, gs.Constant):
            continue
        if math.prod(tensor.shape) <= MAX_SHAPE_VALUES:
            initializers.append(exporter.OnnxExporter.export_tensor_proto(tensor))
        else:
            inputs.append(typed_input(tensor))
    outputs = [onnx.helper.make_empty_tensor_value_info(t.name) for t in graph.outputs]
    nodes = [exporter.OnnxExporter.export_node(node) for node in graph.nodes]
    proto = onnx.helper.make_graph(nodes, "skeleton", inputs, outputs, initializers)
    proto.value_info.extend(_told(graph))
    return onnx.helper.make_model(
        proto,
        opset_imports=exporter.update_import_domains(graph),
        functions=[exporter.OnnxExporter.export_function(f) for f in graph.functions],
    )


def _told(graph: gs.Graph) -> Iterator[onnx.ValueInfoProto]:
    """Shapes with free dimensions that follow from sizes which ONNX's inference does not look at."""
    outputs = {tensor.name for tensor in graph.outputs}
    for node in graph.nodes:
        rule = next((rule for op, rule in _TOLD.items() if is_op(node, op)), None)
        shape = rule(node) if rule is not None and len(node.outputs) == 1 else None
        if shape is None or node.outputs[0].dtype is None or node.outputs[0].name in outputs:
            continue
        exporter = gs.exporters.onnx_exporter
        told = gs.Variable(node.outputs[0].name, node.outputs[0].dtype, shape)
        yield exporter.OnnxExporter.export_value_info_proto(told, True)


def _of_range(node: gs.Node) -> Dims | None:
    whole = (integers(node.inputs[0]), integers(node.inputs[2])) == ([0], [1])
    size = size_of(node.inputs[1]) if whole else None
    return None if size is None else _named((size,))


def _of_expand(node: gs.Node) -> Dims | None:
    own, target = known_sizes(dims(node.inputs[0])), sizes_in(node.inputs[1])
    if own is None or target is None or len(own) > len(target):
        return None
    own = (Size(1),) * (len(target) - len(own)) + own
    if any(Size(1) not in (a, b) and a != b for a, b in zip(own, target, strict=True)):
        return None
    return _named(tuple(b if a == Size(1) else a for a, b in zip(own, target, strict=True)))


def _of_slice(node: gs.Node) -> Dims | None:
    part, shape = free_part(node), dims(node.inputs[0])
    if part is None or shape is None:
        return None
    return [part.dimension if axis == part.axis else n for axis, n in enumerate(shape)]


def _named(sizes: tuple[Size, ...]) -> Dims | None:
    """Sizes as a shape; None where one is a product, which has no name."""
    plain = all(not s.free or (s.factor == 1 and len(s.free) == 1) for s in sizes)
    return [s.free[0] if s.free else s.factor for s in sizes] if plain else None


_TOLD: Mapping[str, Callable[[gs.Node], Dims | None]] = {
    "Range": _of_range,
    "Expand": _of_expand,
    "Slice": _of_slice,
}


def _refine(tensor: gs.Variable, proto: onnx.TypeProto, known: set[str]) -> None:
    if not proto.HasField("tensor_type"):
        return
    if proto.tensor_type.elem_type:
        importer = gs.importers.onnx_importer
        tensor.dtype = importer.get_numpy_type(proto.tensor_type.elem_type) or (
            proto.tensor_type.elem_type
        )
    if not proto.tensor_type.HasField("shape"):
        return
    inferred = [_dim(dim, known) for dim in proto.tensor_type.shape.dim]
    old = tensor.shape
    if old is None or len(old) != len(inferred):
        tensor.shape = inferred
    else:
        tensor.shape = [_better(a, b) for a, b in zip(old, inferred, strict=True)]


def _dim(dim: onnx.TensorShapeProto.Dimension, known: set[str]) -> int | str | None:
    if dim.HasField("dim_value"):
        return int(dim.dim_value)
    return str(dim.dim_param) if dim.dim_param in known else None


def _better(old: int | str | None, inferred: int | str | None) -> int | str | None:
    if isinstance(inferred, int) or old is None:
        return inferred
    return old


def _symbols(tensors: list[gs.Tensor]) -> list[str]:
    return [dim for t in tensors if t.shape is not None for dim in t.shape if isinstance(dim, str)]
