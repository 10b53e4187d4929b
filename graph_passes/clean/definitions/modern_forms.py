"""Raise an old graph to one opset, so that every later pass and room meets one form of each operator.

What changed between opset 11 and 20 and is rewritten here (all else only grew: new optional
attributes and inputs whose defaults mean the old behaviour, which is checked against the schemas):

    Softmax, LogSoftmax, Hardmax (13)   flatten from `axis` on  ->  along one axis, reshaped if needed
    Squeeze, Unsqueeze, ReduceSum (13), other reductions (18)   attribute `axes`   ->  input
    Split (13, 18)                      attribute `split`  ->  input, or `num_outputs`
    Dropout (12)                        attribute `ratio`  ->  gone: inference never drops
    BatchNormalization (14)             outputs of the training form  ->  gone
    RoiAlign (16)                       regions that half a pixel does not move  ->  said so

Opset 20 is the first with Gelu; LayerNormalization (17) and HardSwish (14) are older. Recognition
of those forms builds on this pass instead of inventing functions of its own. A graph in which there is
an RMSNormalization is raised to 23, its first opset.
"""

from collections.abc import Callable

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from wpk.errors import GraphError
from wpk.graph_passes.core import GraphEditor, GraphPass, PassResult, Refusal
from wpk.graph_passes.core.query import ONNX_DOMAINS, REDUCTIONS, dims, rank, used_outputs

MODERN_OPSET = 20

# Before opset 13 these flatten their input to two dimensions.
FLATTENING_OPS = ("Softmax", "LogSoftmax", "Hardmax")
# The changelog was read up to here (onnx/docs/Changelog.md): no operator changes its meaning under
# the same signature, save where this file says so. Attention does in opset 24.
NEWEST_CHECKED_OPSET = 23


class ModernForms(GraphPass):
    """Bring all nodes to the forms of one opset, or none and say which node stands in the way.

    The pass has its own loop, since one node in the way keeps all the others.
    """

    name = "modern-forms"

    def __init__(self, opset: int = MODERN_OPSET) -> None:
        """Set the opset to reach; graphs that are at or above it are left alone."""
        if opset > NEWEST_CHECKED_OPSET:
            raise GraphError(
                f"graphs cannot be raised to opset {opset}",
                fix=f"raise them to at most {NEWEST_CHECKED_OPSET}",
            )
        self.opset = opset

    def apply(self, graph: gs.Graph) -> PassResult:
        """Rewrite every changed form and set the graph's opset."""
        result = PassResult()
        if graph.opset >= self.opset:
            return result
        result.refusals.extend(self.refusals(graph))
        if result.refusals:
            return result
        editor = GraphEditor(graph)
        for node in list(graph.nodes):
            rewrite = _rewriter(node, graph.opset, self.opset)
            if rewrite is not None:
                rewrite(editor, node)
                result.rewritten += 1
        _set_opset(graph, self.opset)
        result.rewritten += 1
        return result

    def refusals(self, graph: gs.Graph) -> list[Refusal]:
        """Say what keeps the graph from being raised; nothing where it is raised, or is there already."""
        if graph.opset >= self.opset:
            return []
        reasons = ((node, _why_not(graph, node, self.opset)) for node in graph.nodes)
        found = [Refusal(node.name, reason) for node, reason in reasons if reason is not None]
        for function in graph.functions:
            reason = f"local function '{function.name}' would need the new forms too"
            found.append(Refusal(function.name, reason))
        return found


def _set_opset(graph: gs.Graph, opset: int) -> None:
    """Set the opset where graphsurgeon keeps it: a number, and the list that is exported."""
    graph.opset = opset
    others = [i for i in graph.import_domains or [] if i.domain not in ONNX_DOMAINS]
    graph.import_domains = [onnx.helper.make_opsetid("", opset), *others]
    needed = onnx.helper.OP_SET_ID_VERSION_MAP[("ai.onnx", opset)]
    graph.ir_version = max(graph.ir_version or 0, needed)


def _why_not(graph: gs.Graph, node: gs.Node, new_opset: int) -> str | None:
    old_opset = graph.opset
    if node.domain not in ONNX_DOMAINS:
        return None
    if any(True for _ in node.subgraphs()):
        return f"{node.op} holds a subgraph, which would need the new forms too"
    old, new = _schema(node.op, old_opset), _schema(node.op, new_opset)
    for schema, opset in ((old, old_opset), (new, new_opset)):
        if schema is None or schema.deprecated:
            return f"{node.op} is not an operator of opset {opset}"
    if old is None or new is None:
        return None
    if old.since_version == new.since_version:
        return None
    if node.op == "Resize" and node.attrs.get("coordinate_transformation_mode") == (
        "tf_half_pixel_for_nn"
    ):
        return "Resize has mode tf_half_pixel_for_nn, which opset 13 removed"
    statistics = [tensor for tensor in used_outputs(graph, node) if tensor is not node.outputs[0]]
    if node.op == "BatchNormalization" and statistics:
        return "BatchNormalization is in training mode: its statistics are read"
    if node.op in FLATTENING_OPS and old.since_version < 13:
        return _why_softmax_stays(node)
    if _rewriter(node, old_opset, new_opset) is not None:
        return None
    return _why_incompatible(old, new)


def _schema(op: str, opset: int) -> onnx.defs.OpSchema | None:
    try:
        return onnx.defs.get_schema(op, opset, "")
    except onnx.defs.SchemaError:
        return None


def _why_incompatible(old: onnx.defs.OpSchema, new: onnx.defs.OpSchema) -> str | None:
    """Compare two schemas: the new one must read the old form and mean the same by default."""
    change = f"{old.name} changed between opset {old.since_version} and {new.since_version}"
    for name, attribute in old.attributes.items():
        if name not in new.attributes:
            return f"{change}: attribute '{name}' is gone"
        if attribute.default_value != new.attributes[name].default_value:
            return f"{change}: attribute '{name}' has another default"
    for name, attribute in new.attributes.items():
        if name not in old.attributes and attribute.required:
            return f"{change}: attribute '{name}' is required"
    if new.min_input > old.min_input or new.max_input < old.max_input:
        return f"{change}: it takes other inputs"
    if new.max_output < old.max_output:
        return f"{change}: it gives fewer outputs"
    return None


def _why_softmax_stays(node: gs.Node) -> str | None:
    shape = dims(node.inputs[0])
    if shape is None:
        return f"the rank of '{node.inputs[0].name}' is unknown, and {node.op} flattens it"
    axis = _old_axis(node, len(shape))
    if axis == len(shape) - 1 or _single_axis(shape, axis) is not None:
        return None
    # Reshape gives back all but one dimension, and with axis 1 the leading one by copying.
    unknown = [dim for dim in shape[1 if axis == 1 else 0 :] if not isinstance(dim, int)]
    if len(unknown) > (1 if axis != 1 else 0):
        return f"'{node.inputs[0].name}' has free dimensions, and {node.op} flattens it"
    return None


def _rewriter(
    node: gs.Node, old_opset: int, new_opset: int
) -> Callable[[GraphEditor, gs.Node], None] | None:
    """Return what brings ``node`` to the new form; None when its form did not change."""
    if node.domain not in ONNX_DOMAINS:
        return None
    axes_since = 13 if node.op in ("Squeeze", "Unsqueeze", "ReduceSum") else 18
    if node.op in ("Squeeze", "Unsqueeze", *REDUCTIONS):
        return _axes_to_input if old_opset < axes_since <= new_opset else None
    if node.op in FLATTENING_OPS:
        return _softmax_along_axis if old_opset < 13 <= new_opset else None
    if node.op == "Split":
        return _split_sizes if old_opset < 18 <= new_opset else None
    if node.op == "Dropout":
        return _without_ratio if old_opset < 12 <= new_opset else None
    if node.op == "RoiAlign":
        return _whole_pixels if old_opset < 16 <= new_opset else None
    if node.op == "BatchNormalization":
        return _inference_outputs if old_opset < 14 <= new_opset else None
    return None


def _axes_to_input(editor: GraphEditor, node: gs.Node) -> None:
    axes = node.attrs.pop("axes", None)
    if axes is not None:
        constant = editor.constant(f"{node.name}_axes", np.array(axes, np.int64))
        node.inputs = [node.inputs[0], constant]


def _split_sizes(editor: GraphEditor, node: gs.Node) -> None:
    sizes = node.attrs.pop("split", None)
    if sizes is not None:
        constant = editor.constant(f"{node.name}_split", np.array(sizes, np.int64))
        node.inputs = [node.inputs[0], constant]
    elif len(node.inputs) == 1:
        node.attrs["num_outputs"] = len(node.outputs)


def _without_ratio(editor: GraphEditor, node: gs.Node) -> None:
    del editor
    node.attrs.pop("ratio", None)


def _inference_outputs(editor: GraphEditor, node: gs.Node) -> None:
    """Keep the normalised output only: before opset 14 the others existed in training alone."""
    del editor
    node.outputs = [node.outputs[0]]


def _whole_pixels(editor: GraphEditor, node: gs.Node) -> None:
    del editor
    node.attrs["coordinate_transformation_mode"] = "output_half_pixel"


def _old_axis(node: gs.Node, dimensions: int) -> int:
    axis = int(node.attrs.get("axis", 1))
    return axis + dimensions if axis < 0 else axis


def _single_axis(shape: list[int | str | None], axis: int) -> int | None:
    """Return the only dimension from ``axis`` on that is not 1: flattening is then no change."""
    wide = [index for index in range(axis, len(shape)) if shape[index] != 1]
    return wide[0] if len(wide) == 1 else None


def _softmax_along_axis(editor: GraphEditor, node: gs.Node) -> None:
    source, output = node.inputs[0], node.outputs[0]
    dimensions = rank(source) or 0
    axis = _old_axis(node, dimensions)
    shape = dims(source) or []
    single = dimensions - 1 if axis == dimensions - 1 else _single_axis(shape, axis)
    node.attrs["axis"] = -1 if single is None else single
    if single is not None:
        return
    target = [dim if isinstance(dim, int) else -1 for dim in shape]
    if axis == 1:
        target[0] = 0
    flat = editor.add("Flatten", [source], like=output, shape=[None, None], attrs={"axis": axis})
    node.inputs = [flat]
    soft = gs.Variable(editor.new_name(f"{output.name}_flat"), output.dtype, [None, None])
    node.outputs = [soft]
    sizes = editor.constant(f"{output.name}_shape", np.array(target, np.int64))
    shaped = editor.add("Reshape", [soft, sizes], like=output)
    maker = shaped.inputs[0]
    maker.outputs = [output]
