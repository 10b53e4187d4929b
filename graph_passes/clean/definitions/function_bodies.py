"""Write operators that ONNX defines as functions of other operators as those, where wpk has no row.

    y = CastLike(x, like)        ->  y = Cast<to = the type of like>(x)
    y = RotaryEmbedding(x, ...)  ->  its Slices, Muls, Adds and Concats

The body is ONNX's own (`onnx.defs`), for the opset, the attributes and the inputs' types of the node. A body
that holds what wpk does not carry either stays one node. Later passes fold the constants and the
arithmetic on shapes that bodies are full of.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import onnx
import onnx_graphsurgeon as gs
from onnx import inliner

from wpk.graph_passes.clean.control_flow.carried import (
    FOLDED,
    LOOPS,
    is_carried,
    is_function,
    schema_of,
)
from wpk.graph_passes.clean.control_flow.subgraphs import tensors_within, with_nested
from wpk.graph_passes.core import GraphEditor, Refusal, Rule, refusal
from wpk.graph_passes.core.query import (
    ONNX_DOMAINS,
    element_type,
    rank,
    static_shape,
    used_outputs,
)
from wpk.operators import OPERATORS, OperatorKind

_LEFT = ("DynamicQuantizeLinear",)
"""Operators whose function divides by zero where ONNX Runtime does not; another pass writes them."""

_WITH_MASK = (1, 2)
"""Forms of the scores that Attention gives in which masked ones are -inf, or ONNX Runtime's lowest number."""

_DOMAIN = "wpk.body"
"""Of the function, while ONNX's own inliner puts it in place."""


@dataclass(frozen=True)
class Body:
    """A node, and the graph that it becomes: inputs and outputs by position."""

    node: gs.Node
    graph: gs.Graph


class FunctionBodies(Rule[Body]):
    """Replace nodes by the bodies of their functions; a function inside a body waits for the next round."""

    name = "function-bodies"

    def match(self, graph: gs.Graph, node: gs.Node) -> Body | Refusal | None:
        """Match operators that ONNX defines as functions and that wpk does not carry in this form."""
        if node.domain not in ONNX_DOMAINS or not node.outputs or not _is_to_expand(graph, node):
            return None
        schema = schema_of(node.op, graph.opset)
        if schema is None or not is_function(schema):
            return None
        reason = _why_unknown(node) or _why_disputed(graph, node)
        if reason is not None:
            return Refusal(node.name, reason)
        function = _function(schema, node, graph.opset)
        if function is None:
            return Refusal(node.name, f"ONNX has no body of {node.op} for opset {graph.opset}")
        reason = _why_not_carried(function, node, graph.opset)
        return refusal(node, reason) or Body(node, _inlined(function, schema, node, graph.opset))

    def rewrite(self, editor: GraphEditor, match: Body) -> None:
        """Put the body's nodes into the graph, under new names."""
        node, body = match.node, match.graph
        given = {t.name: old for t, old in zip(body.inputs, node.inputs, strict=True) if t.name}
        own = {id(t): t for t in tensors_within(body.nodes) if not t.is_empty()}
        for tensor in own.values():
            if tensor.name not in given:
                tensor.name = editor.new_name(f"{node.name}_{tensor.name}")
        for inner in with_nested(body.nodes):
            inner.name = editor.new_name(f"{node.name}_{inner.op}")
            inner.inputs = [given.get(t.name, t) for t in inner.inputs]
        results, outputs = list(body.outputs), list(node.outputs)
        node.inputs.clear()
        node.outputs.clear()
        editor.graph.nodes.extend(list(body.nodes))
        for result, output in zip(results, outputs, strict=True):
            if not output.is_empty():
                source = given.get(result.name, result)
                name = editor.new_name(f"{output.name}_Identity")
                editor.graph.nodes.append(gs.Node("Identity", name, {}, [source], [output]))


def _is_to_expand(graph: gs.Graph, node: gs.Node) -> bool:
    """Whether wpk does not carry a node: its operator, or as many outputs as are used."""
    if any(True for _ in node.subgraphs()):
        return False
    row = OPERATORS.get(node.op)
    if row is None or row.kind is OperatorKind.OTHER:
        return node.op not in (*FOLDED, *_LEFT)
    if row.kind is OperatorKind.NORMALISATION:
        return any(tensor is not node.outputs[0] for tensor in used_outputs(graph, node))
    return False


def _why_unknown(node: gs.Node) -> str | None:
    """Say what the body depends on and inference has not found: types, and the inputs' ranks."""
    for tensor in node.inputs:
        if tensor.is_empty():
            continue
        if element_type(tensor) is None:
            return f"the type of '{tensor.name}' is not known"
        if rank(tensor) is None:
            return f"the rank of '{tensor.name}' is not known"
    return None


_WINDOWS = ("BlackmanWindow", "HammingWindow", "HannWindow")


def _why_disputed(graph: gs.Graph, node: gs.Node) -> str | None:
    """Say on what runtimes do not agree, so that none can bear witness."""
    if node.op in _WINDOWS:
        return "runtimes round its angles differently, and its ends are nearly zero"
    if node.op != "Attention" or not node.attrs.get("is_causal", 0):
        return None
    scores = [t for t in node.outputs[3:] if any(t is used for used in used_outputs(graph, node))]
    if scores and node.attrs.get("qk_matmul_output_mode", 0) in _WITH_MASK:
        return "its scores are given, and runtimes do not agree on those that are masked"
    return None


def _function(schema: Any, node: gs.Node, opset: int) -> onnx.FunctionProto | None:
    """Return the body for this node, of the newest opset that has one; None where there is none."""
    of_all, of_each = (
        [version for version in versions if version <= opset]
        for versions in (
            schema.function_opset_versions,
            schema.context_dependent_function_opset_versions,
        )
    )
    found = b""
    if of_all:
        found = schema.get_function_with_opset_version(max(of_all))
    elif of_each:
        types = [_type(tensor).SerializeToString() for tensor in node.inputs]
        proto = gs.exporters.onnx_exporter.OnnxExporter.export_node(node)
        found = schema.get_context_dependent_function_with_opset_version(
            max(of_each), proto.SerializeToString(), types
        )
    function = onnx.FunctionProto.FromString(found)
    return function if function.node else None


def _type(tensor: gs.Tensor) -> onnx.TypeProto:
    if tensor.is_empty():
        return onnx.TypeProto()
    return _value(tensor).type


def _value(tensor: gs.Tensor) -> onnx.ValueInfoProto:
    dtype = gs.exporters.onnx_exporter.dtype_to_onnx(element_type(tensor))
    return onnx.helper.make_tensor_value_info(tensor.name, dtype, tensor.shape)


def _why_not_carried(function: onnx.FunctionProto, node: gs.Node, opset: int) -> str | None:
    """Say which operator of a body wpk does not carry either, nor has a body of its own."""
    written = next((each.version for each in function.opset_import if not each.domain), opset)
    for inner in _nested(function.node):
        op = inner.op_type
        schema, old = schema_of(op, opset), schema_of(op, written)
        if schema is None or old is None:
            return f"its definition by ONNX has {op}, which opset {opset} does not have"
        if _has_changed(inner, old, schema):
            return f"its definition by ONNX is of opset {written}, and {op} has changed since then"
        if not is_carried(op, opset):
            return f"its definition by ONNX has {op}, which is not supported"
        free = [t for t in node.inputs if not t.is_empty() and static_shape(t) is None]
        if op in LOOPS and free:
            return f"its definition by ONNX has {op}, and '{free[0].name}' has a free dimension"
    return None


def _nested(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """Yield nodes, and those of their subgraphs."""
    for node in nodes:
        yield node
        for attribute in node.attribute:
            yield from _nested(attribute.g.node)


def _has_changed(node: onnx.NodeProto, old: Any, new: Any) -> bool:
    """Tell whether a node of a body means something else, or nothing, in a newer opset."""
    given = {attribute.name for attribute in node.attribute}
    return not given <= set(new.attributes) or any(
        name not in given
        and name in new.attributes
        and attribute.default_value != new.attributes[name].default_value
        for name, attribute in old.attributes.items()
    )


def _inlined(function: onnx.FunctionProto, schema: Any, node: gs.Node, opset: int) -> gs.Graph:
    """Return the body with the node's attributes in it, as a graph."""
    call = gs.exporters.onnx_exporter.OnnxExporter.export_node(node)
    call.domain = function.domain = _DOMAIN
    _name_ports(call)
    given = {attribute.name for attribute in call.attribute}
    call.attribute.extend(
        each.default_value
        for name, each in schema.attributes.items()
        if name not in given and each.default_value.name
    )
    function.ClearField("attribute_proto")
    function.ClearField("opset_import")
    function.opset_import.append(onnx.helper.make_opsetid("", opset))
    function.attribute.extend(a.name for a in call.attribute if a.name not in function.attribute)
    inputs = [
        onnx.helper.make_tensor_value_info(name, _type(t).tensor_type.elem_type, t.shape)
        for name, t in zip(call.input, node.inputs, strict=True)
        if name
    ]
    outputs = [onnx.helper.make_empty_tensor_value_info(name) for name in call.output if name]
    model = onnx.helper.make_model(
        onnx.helper.make_graph([call], "body", inputs, outputs),
        opset_imports=[onnx.helper.make_opsetid("", opset), onnx.helper.make_opsetid(_DOMAIN, 1)],
        functions=[function],
    )
    return _with_ports(gs.import_onnx(inliner.inline_local_functions(model)), call)


def _name_ports(call: onnx.NodeProto) -> None:
    """Tell inputs apart that are one tensor, since graphs have no input twice."""
    for names, role in ((call.input, "input"), (call.output, "output")):
        for index, name in enumerate(names):
            names[index] = f"{role}_{index}" if name else ""


def _with_ports(graph: gs.Graph, call: onnx.NodeProto) -> gs.Graph:
    """Give a graph an empty input and output wherever the call has none."""
    graph.inputs = _placed(graph.inputs, call.input)
    graph.outputs = _placed(graph.outputs, call.output)
    return graph


def _placed(tensors: Sequence[gs.Tensor], names: Sequence[str]) -> list[gs.Tensor]:
    by_name = {tensor.name: tensor for tensor in tensors}
    return [by_name[name] if name else gs.Variable.empty() for name in names]
