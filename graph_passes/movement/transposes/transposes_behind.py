"""Move transposes behind the element-wise nodes that read them.

    f(Transpose(x), Transpose(y), c)  ->  Transpose(f(x, y, c'))     c constant, c' in the order of x
    f(Transpose(x), z)                ->  Transpose(f(x, Transpose(z)))     x of a product, z of a convolution before it
    f(Transpose(x), z)                ->  Transpose(f(x, Transpose(z)))     x of a convolution, z of a product before it

Exact: f computes element by element. It then follows what computes ``x``, whose kernel can take it as
its epilogue: ConvNeXt scales the product of its channels and adds the block's input, but behind a
transpose to channels first. In the other forms something else is turned instead, which costs nothing where a
convolution gives either of both, since it reads and writes in either order.
"""

from collections.abc import Sequence

import numpy as np
import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor, Rule
from wpk.graph_passes.core.exact import moved_constant
from wpk.graph_passes.core.kinds import SPATIAL, is_anchor, is_elementwise
from wpk.graph_passes.core.known import is_constant
from wpk.graph_passes.core.query import dims, is_op, producer, same_dims
from wpk.graph_passes.movement.chains.latest_anchor import LatestAnchors
from wpk.graph_passes.movement.chains.reshape_chains import RESHAPES
from wpk.graph_passes.movement.transposes.turns import Swap, Turn, transpose_of, turned

_BYTES = (np.int8, np.uint8)

_LEAST_RANK = 3
"""Of tensors: a transposed matrix is read in place by whatever multiplies it."""


class TransposesBehind(Rule[Swap]):
    """Let element-wise nodes compute in the order of what makes their operands."""

    name = "transposes-behind"

    def match(self, graph: gs.Graph, node: gs.Node) -> Swap | None:
        """Match where one order serves every operand, or all but some of convolutions."""
        output = node.outputs[0] if is_elementwise(node) else None
        shape = None if output is None else dims(output)
        if output is None or shape is None or len(shape) < _LEAST_RANK:
            return None
        of_bytes = any(tensor.dtype in _BYTES for tensor in (*node.inputs, output))
        turns = [_turn(t, of_bytes=of_bytes) for t in node.inputs if same_dims(dims(t), shape)]
        perm = next((turn.perm for turn in turns if turn is not None), None)
        if perm is None:
            return None
        inputs = [_Operand(tensor, perm, len(shape)) for tensor in node.inputs]
        if not all(operand.is_known for operand in inputs) or not _fits(graph, inputs):
            return None
        inside = [shape[axis] for axis in np.argsort(perm)]
        attrs = node.attrs

        def make(editor: GraphEditor) -> gs.Tensor:
            tensors = [operand.inside(editor) for operand in inputs]
            return editor.add(node.op, tensors, like=output, shape=inside, attrs=attrs)

        return Swap(output, make, perm)

    def rewrite(self, editor: GraphEditor, match: Swap) -> None:
        """Write the node, and the transpose behind it."""
        attrs = {"perm": match.perm}
        new = editor.add("Transpose", [match.make(editor)], like=match.output, attrs=attrs)
        editor.replace(match.output, new)


class _Operand:
    """What a node reads, and what it reads instead before the transpose."""

    def __init__(self, tensor: gs.Tensor, perm: list[int], rank: int) -> None:
        self._tensor, self._perm, self._rank = tensor, perm, rank
        turn = _turn(tensor)
        self.is_constant = is_constant(tensor)
        self.is_turned = turn is not None and turn.perm == perm
        self.is_known = self.is_constant or len(dims(tensor) or []) == rank
        self.source = turn.source if turn is not None and turn.perm == perm else tensor

    def inside(self, editor: GraphEditor) -> gs.Tensor:
        """The operand in the order before the transpose."""
        tensor, order = self._tensor, [int(axis) for axis in np.argsort(self._perm)]
        if self.is_turned:
            return self.source
        if isinstance(tensor, gs.Constant):
            missing = self._rank - len(tensor.shape)
            wide = (*(1,) * missing, *tensor.shape)
            moved = [wide[axis] for axis in order]
            short = moved[next((i for i, size in enumerate(moved) if size != 1), self._rank) :]
            name = editor.new_name(f"{tensor.name}_turned")
            return moved_constant(
                name, tensor, lambda array: array.reshape(wide).transpose(order).reshape(short)
            )
        if tensor.is_empty():
            return tensor
        return turned(editor, tensor, order)


def _turn(tensor: gs.Tensor, *, of_bytes: bool = False) -> Turn | None:
    """The Transpose that makes a tensor of an operator's result, and leaves the first dimension in front.

    The result may be reshaped between, but not for what makes bytes or reads them, which products of bytes look for
    in front of them.
    """
    turn = transpose_of(tensor)
    if turn is None or turn.perm[0] != 0:
        return None
    maker = producer(turn.source)
    if maker is not None and is_op(maker, *RESHAPES) and not of_bytes:
        maker = producer(maker.inputs[0])
    return turn if is_anchor(maker) or is_elementwise(maker) else None


def _fits(graph: gs.Graph, inputs: Sequence[_Operand]) -> bool:
    """Whether nothing has to be turned but what is ready before, where a convolution makes that free."""
    strangers = [each.source for each in inputs if not each.is_turned and not each.is_constant]
    if not strangers:
        return True
    own = [each.source for each in inputs if each.is_turned]
    anchors = LatestAnchors(graph)
    last = max(anchors.before(tensor) for tensor in own)
    if last <= max(anchors.before(tensor) for tensor in strangers):
        return False
    return is_op(graph.nodes[last], *SPATIAL) or all(_of_image(tensor) for tensor in strangers)


def _of_image(tensor: gs.Tensor) -> bool:
    """Whether a convolution or a pooling makes a tensor, itself or through element-wise nodes."""
    waiting, seen = [tensor], 0
    while waiting and seen < _MOST_NODES:
        maker, seen = producer(waiting.pop()), seen + 1
        if is_op(maker, *SPATIAL):
            return True
        if maker is not None and is_elementwise(maker):
            waiting.extend(maker.inputs)
    return False


_MOST_NODES = 32
"""Element-wise nodes that are looked through."""
