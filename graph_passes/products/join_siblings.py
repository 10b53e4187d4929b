"""Join products that read one tensor into one product, whose parts are ranges of its channels.

    L(x; W1, b1), L(x; W2, b2)   ->  Split(L(x; [W1 W2], [b1 b2]))         L: Conv, Gemm, MatMul + b
    Relu(L1(x)), Relu(L2(x))     ->  Split(Relu(L12(x)))                   any activation without operands
    Relu(L1(x)), L2(x)           ->  Split(Max(L12(x), [0 .. -inf ..]))

Exact: every channel is the same sum as before. The branches of an inception block, query, key and
value of an attention, the two products that begin a residual block with a projection. Parts of a
split lie in memory where the product writes them, so they need no copies as long as they begin at
aligned addresses.
"""

from collections.abc import Sequence

import numpy as np
import onnx_graphsurgeon as gs

from wpk.dtypes import DType
from wpk.graph_passes.core import GraphEditor, GraphPass, PassResult
from wpk.graph_passes.core.exact import joined_constant
from wpk.graph_passes.core.query import dims, given
from wpk.graph_passes.fold.linear_operator import channel_axis
from wpk.graph_passes.products.siblings import Sibling, families

ALIGNMENT = 16
"""Bytes that the address of a part is a multiple of, so that it is read with the widest accesses."""

CHOICE = "products of one tensor are one product"


class JoinSiblings(GraphPass):
    """Make one product of those that read one tensor with the same window.

    The pass has its own loop, which goes over families and not over nodes.
    """

    name = "join-siblings"
    is_choice = True

    def __init__(self, storage: DType = DType.FP32) -> None:
        """Remember the type in which tensors will be stored: it decides which parts align."""
        self._step = ALIGNMENT // storage.bytes

    def apply(self, graph: gs.Graph) -> PassResult:
        """Join every family; which products are one is for `families` to say."""
        result = PassResult()
        editor = GraphEditor(graph)
        for family in families(graph, result.refuse):
            members = self._in_order(family, result)
            nodes = [one.product for one in members]
            nodes += [one.activation for one in members if one.activation is not None]
            if len(members) > 1 and self.takes(result, nodes, CHOICE):
                _join(editor, members)
                result.rewritten += 1
        return result

    def _in_order(self, family: Sequence[Sibling], result: PassResult) -> list[Sibling]:
        """The members, parts of a concatenation last; one may end unaligned where none follows."""
        fitting = [one for one in family if one.channels % self._step == 0]
        for one in family:
            if one.channels % self._step:
                result.refuse(
                    one.product,
                    f"its {one.channels} channels are no multiple of {self._step}, "
                    "so that the part after them would not align",
                )
        return sorted(fitting, key=lambda one: one.begins_concatenation)


def _join(editor: GraphEditor, members: Sequence[Sibling]) -> None:
    first = members[0].product
    axis = channel_axis(first)
    total = sum(one.channels for one in members)
    joined = _product(editor, members, total)
    for op, attrs, parameters in _tail(editor, members, len(dims(joined) or ()), axis):
        joined = editor.add(op, [joined, *parameters], like=joined, attrs=attrs)
    sizes = editor.constant(
        f"{first.name}_sizes", np.array([one.channels for one in members], np.int64)
    )
    outputs = [one.output for one in members]
    for output in outputs:
        output.inputs.clear()
    name = editor.new_name(f"{first.name}_parts")
    along = axis % len(dims(joined) or (0,))
    split = gs.Node("Split", name, {"axis": along}, [joined, sizes], outputs)
    editor.graph.nodes.append(split)


def _product(editor: GraphEditor, members: Sequence[Sibling], total: int) -> gs.Variable:
    """The product of all members, its bias added."""
    first = members[0].product
    axis = channel_axis(first)
    shape = dims(first.outputs[0]) or []
    shape[axis] = total
    dtype = first.inputs[1].dtype
    name = editor.new_name(f"{first.inputs[1].name}_joined")
    weights = joined_constant(name, [one.weight for one in members], members[0].weight_axis)
    inputs = [first.inputs[0], weights]
    biases = [one.bias for one in members]
    known = [bias for bias in biases if bias is not None]
    vector = None
    if known:
        parts = [
            np.zeros(one.channels) if bias is None else bias
            for one, bias in zip(members, biases, strict=True)
        ]
        vector = editor.constant(f"{first.inputs[1].name}_biases", np.concatenate(parts), dtype)
    if vector is not None and first.op != "MatMul":
        inputs.append(vector)
    like, name = first.outputs[0], f"{first.name}_joined"
    product = editor.add(first.op, inputs, like=like, shape=shape, name=name, attrs=first.attrs)
    if vector is None or first.op != "MatMul":
        return product
    return editor.add("Add", [product, vector], like=product)


Step = tuple[str, dict[str, object], list[gs.Tensor]]


def _tail(
    editor: GraphEditor, members: Sequence[Sibling], dimensions: int, axis: int
) -> list[Step]:
    """The activation of all members; where some have none, their channels have no lower limit."""
    activations = [one.activation for one in members]
    acting = [node for node in activations if node is not None]
    if not acting:
        return []
    if len(acting) == len(members):
        parameters = [
            given(acting[0], i) or gs.Variable.empty() for i in range(1, len(acting[0].inputs))
        ]
        return [(acting[0].op, dict(acting[0].attrs), parameters)]
    dtype = members[0].product.inputs[1].dtype
    lowest = [
        np.full(one.channels, -np.inf if node is None else 0.0, dtype)
        for one, node in zip(members, activations, strict=True)
    ]
    shape = [1] * dimensions
    shape[axis] = -1
    limits = np.concatenate(lowest).reshape(shape)
    return [("Max", {}, [editor.constant(f"{acting[0].name}_limits", limits)])]
