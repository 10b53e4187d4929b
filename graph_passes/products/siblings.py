"""Find products that read one tensor and differ in their constants alone.

    x  ->  L(x; W, b)  ->  [+ b]  ->  [activation]  ->  output        one sibling

Siblings of one *family* have the same operator, window and activation; an activation may be missing
where the others have Relu, which channels without a lower limit say too.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import onnx_graphsurgeon as gs
from numpy.typing import NDArray

from wpk.graph_passes.core import Refusal
from wpk.graph_passes.core.functions import outside_inputs
from wpk.graph_passes.core.kinds import VIEWS, is_anchor, is_elementwise
from wpk.graph_passes.core.query import (
    floats,
    given,
    is_graph_output,
    is_op,
    live_nodes,
    producer,
    rank,
    split_constant,
    values,
)
from wpk.graph_passes.core.tidy import read_tensors
from wpk.graph_passes.fold.linear_operator import (
    channel_axis,
    channel_vector,
    output_channels,
    why_not_linear,
)
from wpk.graph_passes.movement.chains.views import trace
from wpk.operators import Rewrite, names

_PRODUCTS = ("Conv", "Gemm", "MatMul")
_ACTIVATIONS = names(lambda row: Rewrite.ACTIVATION in row.rewrites)

Refuse = Callable[[gs.Node, str], None]


@dataclass(frozen=True)
class Sibling:
    """A product with its bias and activation.

    Attributes:
        product: The Conv, Gemm or MatMul.
        output: What its readers read, behind bias and activation.
        bias: One number for each channel, or None.
        activation: The activation's node, or None.
        begins_concatenation: Whether a Concat of channels has the output as its first input.
    """

    product: gs.Node
    output: gs.Tensor
    bias: NDArray[np.float64] | None
    activation: gs.Node | None
    begins_concatenation: bool

    @property
    def weight(self) -> gs.Constant:
        """The constant weights."""
        return self.product.inputs[1]

    @property
    def weight_axis(self) -> int:
        """Axis of the output channels in the weights."""
        transposed = is_op(self.product, "Gemm") and self.product.attrs.get("transB", 0)
        return 0 if is_op(self.product, "Conv") or transposed else -1

    @property
    def channels(self) -> int:
        """Output channels."""
        return output_channels(self.product)


def families(graph: gs.Graph, refuse: Refuse) -> Iterator[list[Sibling]]:
    """Yield groups of two and more siblings that may be one product.

    Args:
        graph: Read only; callers may rewrite a group before they ask for the next.
        refuse: Told why a product beside others is in no group.
    """
    for products in _beside_each_other(graph):
        found: dict[object, list[Sibling]] = {}
        for product in products:
            sibling = _read(graph, product)
            if isinstance(sibling, Refusal):
                refuse(product, sibling.reason)
            else:
                found.setdefault(_key(sibling), []).append(sibling)
        for group in found.values():
            if len(group) > 1:
                yield group
            else:
                refuse(group[0].product, "no product beside it has its window and activation")


def _beside_each_other(graph: gs.Graph) -> list[list[gs.Node]]:
    """Products by what they read, where there are several."""
    readers: dict[int, list[gs.Node]] = {}
    for node in live_nodes(graph, *_PRODUCTS):
        readers.setdefault(id(node.inputs[0]), []).append(node)
    return [nodes for nodes in readers.values() if len(nodes) > 1]


def _read(graph: gs.Graph, product: gs.Node) -> Sibling | Refusal:
    """The sibling that begins with ``product``, or why it is none."""
    reason = _why_no_product(product)
    if reason is not None:
        return Refusal(product.name, reason)
    output = product.outputs[0]
    bias = _own_bias(product)
    if isinstance(bias, Refusal):
        return bias
    addition = _only_reader(graph, output, "Add") if is_op(product, "MatMul") else None
    sides = split_constant(addition) if addition is not None else None
    if addition is not None and sides is not None:
        dimensions = rank(output) or 0
        vector = channel_vector(product, sides[1], dimensions, -1, output_channels(product))
        if not isinstance(vector, Refusal):
            bias, output = vector, addition.outputs[0]
    activation = _only_reader(graph, output, *_ACTIVATIONS)
    if activation is not None and _is_plain(activation):
        output = activation.outputs[0]
    else:
        activation = None
    reason = _why_not_apart(graph, product, output)
    if reason is not None:
        return Refusal(product.name, reason)
    begins = any(is_op(r, "Concat") and r.inputs[0] is output for r in output.outputs)
    return Sibling(product, output, bias, activation, begins)


def _why_no_product(product: gs.Node) -> str | None:
    reason = why_not_linear(product)
    if reason is None and int(product.attrs.get("group", 1)) != 1:
        reason = f"it has {product.attrs['group']} groups of channels"
    if reason is None and is_op(product, "MatMul") and rank(product.inputs[1]) != 2:
        reason = f"'{product.inputs[1].name}' is a batch of matrices"
    if reason is None and rank(product.outputs[0]) is None:
        reason = f"the rank of '{product.outputs[0].name}' is unknown"
    return reason


def _own_bias(product: gs.Node) -> NDArray[np.float64] | Refusal | None:
    bias = given(product, 2)
    if bias is None:
        return None
    if is_op(product, "Conv"):
        return floats(bias)
    return channel_vector(product, bias, 2, -1, output_channels(product))


def _only_reader(graph: gs.Graph, tensor: gs.Tensor, *ops: str) -> gs.Node | None:
    if is_graph_output(graph, tensor) or len(tensor.outputs) != 1:
        return None
    reader = tensor.outputs[0]
    return reader if is_op(reader, *ops) else None


def _is_plain(activation: gs.Node) -> bool:
    """Whether only the product's value enters: bounds of a Clip must be constant."""
    return all(t.is_empty() or values(t) is not None for t in activation.inputs[1:])


def _why_not_apart(graph: gs.Graph, product: gs.Node, output: gs.Tensor) -> str | None:
    """Say why ``output`` must be made by a kernel of its own."""
    if is_graph_output(graph, output):
        return f"'{output.name}' is a graph output"
    for reader in output.outputs:
        if is_elementwise(reader) and not _computed_elsewhere(reader, product, output):
            return f"'{reader.name}' behind it would need a kernel of its own"
    axis = channel_axis(product) % (rank(output) or 1)
    return _why_not_in_place(output, axis, [])


def _why_not_in_place(output: gs.Tensor, axis: int, chain: list[gs.Node]) -> str | None:
    """Say which view behind ``output`` would need its channels without gaps between their rows."""
    for reader in (chain[-1].outputs[0] if chain else output).outputs:
        if not is_op(reader, *VIEWS):
            continue
        views = trace(output, [*chain, reader])
        if views is None:
            return (
                f"the shapes between '{output.name}' and '{reader.outputs[0].name}' are not known"
            )
        for group in views.groups:
            axes = {factor.axis for factor in group}
            if axis in axes and len(axes) > 1:
                return f"'{reader.name}' makes one dimension of its channels and others"
        reason = _why_not_in_place(output, axis, [*chain, reader])
        if reason is not None:
            return reason
    return None


def _computed_elsewhere(reader: gs.Node, product: gs.Node, output: gs.Tensor) -> bool:
    """Whether another anchor can compute ``reader``: one that makes another of its operands.

    Not one before the product, which would wait for itself, nor a product beside it, which would
    be joined as well.
    """
    source = product.inputs[0]
    others = [tensor for tensor in outside_inputs(reader) if tensor is not output]
    anchors = [node for tensor in others for node in _anchors(tensor)]
    if not anchors:
        return False
    before = _ancestors(source)
    return any(id(a) not in before and a.inputs[0] is not source for a in anchors)


def _anchors(tensor: gs.Tensor) -> Iterator[gs.Node]:
    """Yield the anchors that make ``tensor``, alone or with element-wise nodes behind them."""
    waiting, seen = [tensor], set()
    while waiting:
        node = producer(waiting.pop())
        if node is None or id(node) in seen:
            continue
        seen.add(id(node))
        if is_anchor(node):
            yield node
        elif is_elementwise(node):
            waiting.extend(outside_inputs(node))


def _ancestors(tensor: gs.Tensor) -> set[int]:
    """Identities of the nodes that ``tensor`` depends on."""
    waiting, seen = [tensor], set[int]()
    while waiting:
        node = producer(waiting.pop())
        if node is not None and id(node) not in seen:
            seen.add(id(node))
            waiting.extend(read_tensors(node))
    return seen


def _key(sibling: Sibling) -> object:
    """Equal for products that may be one."""
    product, shape = sibling.product, list(sibling.weight.shape)
    del shape[sibling.weight_axis]
    attrs = {key: value for key, value in product.attrs.items() if key != "group"}
    if is_op(product, "Conv"):
        attrs = _window(attrs, len(shape) - 1)
    words = sorted((key, str(value)) for key, value in attrs.items())
    activation = sibling.activation
    floor = activation is None or is_op(activation, "Relu")
    return (
        *(product.op, tuple(shape), str(product.inputs[1].dtype), tuple(words)),
        "floor" if floor else _same(activation),
    )


def _window(attrs: dict[str, object], planes: int) -> dict[str, object]:
    """The window with what ONNX leaves out written down."""
    known = {"strides": [1] * planes, "dilations": [1] * planes, "auto_pad": "NOTSET"}
    if attrs.get("auto_pad", "NOTSET") == "NOTSET":
        known["pads"] = [0] * 2 * planes
    return {key: value for key, value in {**known, **attrs}.items() if key != "kernel_shape"}


def _same(activation: gs.Node | None) -> object:
    """Equal for activations that compute the same."""
    if activation is None:
        return None
    bounds = [None if t.is_empty() else values(t) for t in activation.inputs[1:]]
    attrs = sorted((key, str(value)) for key, value in activation.attrs.items())
    return activation.op, tuple(attrs), tuple(None if b is None else b.tobytes() for b in bounds)
