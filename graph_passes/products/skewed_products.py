"""Multiply each row with the columns of its own that are kept of its product.

    part(MatMul(x, w))[.., i, j]  ->  MatMul(x[.., i], w_i)[.., j]        w_i[:, j] = w[:, g(i, j)]

The part is what Pads, Reshapes and Slices leave of the product: positions relative to row i, which networks shift into
place by padding a row and cutting it elsewhere (Shaw et al. 2018; Vaswani et al. 2021, HaloNet; Srinivas et al. 2021,
BoTNet). Exact: the same terms are summed. The product of each place in a row has a constant matrix of its own, and neither
paddings nor cuts are left. The matrices of all places are read instead of the whole product's one: no more numbers than are
moved no longer.
"""

from dataclasses import dataclass

import numpy as np
import onnx_graphsurgeon as gs
from numpy.typing import NDArray

from wpk.graph_passes.core import GraphEditor, Refusal, Rule, refusal
from wpk.graph_passes.core.exact import moved_constant
from wpk.graph_passes.core.node_parts import NodeParts
from wpk.graph_passes.core.query import is_op, rank, static_shape, zeros_around
from wpk.graph_passes.movement.chains.element_places import MOVES, Places
from wpk.graph_passes.movement.chains.reshape_chains import RESHAPES

_MOST_ELEMENTS = 1 << 24
_MOST_NODES = 12
_SAVED = 2
"""Times that an element of the whole product is moved, which is then neither written nor read to be shifted into place; paddings
between are copies more, where nothing joins them."""
_MOVEMENTS = ("Pad", "Slice", *RESHAPES)


@dataclass(frozen=True)
class _Skewed:
    """A product, what is left of it in which shape, and which columns of its matrix each row is multiplied with."""

    product: gs.Node
    output: gs.Tensor
    shape: tuple[int, ...]
    columns: NDArray[np.int64]


class SkewedProducts(Rule[_Skewed]):
    """Write a product for each place in a row, of the columns that are kept."""

    name = "skewed-products"
    ops = ("MatMul",)

    def match(self, graph: gs.Graph, node: gs.Node) -> _Skewed | Refusal | None:
        """Follow the movements behind a product with a constant as far as they leave rows in order."""
        shape, matrix = static_shape(node.outputs[0]), node.inputs[1]
        if shape is None or len(shape) < 2 or np.prod(shape) > _MOST_ELEMENTS:
            return None
        if not isinstance(matrix, gs.Constant) or rank(matrix) != 2:
            return None
        found: _Skewed | None = None
        chain = _chain(graph, node.outputs[0])
        pads = next((n for n, each in enumerate(chain) if is_op(each, "Pad")), len(chain))
        last = max((n for n, each in enumerate(chain) if is_op(each, "Slice")), default=-1)
        if last < pads:
            return None  # before any place is counted: a large batch has millions
        tensor = node.outputs[0]
        places: Places | None = np.arange(int(np.prod(shape)), dtype=np.int64).reshape(shape)
        for number, reader in enumerate(chain[: last + 1]):
            places = _moved(reader, tensor, places) if places is not None else None
            if places is None:
                break
            tensor = reader.outputs[0]
            columns = _columns(places, shape) if number > pads and is_op(reader, "Slice") else None
            if columns is not None:
                found = _Skewed(node, tensor, places.shape, columns)
        saved = _SAVED * int(np.prod(shape))
        return found and (refusal(node, _why_too_large(matrix, found.columns, saved)) or found)

    def rewrite(self, editor: GraphEditor, match: _Skewed) -> None:
        """Write the product with a matrix for each place in a row."""
        node, output = match.product, match.output
        parts, x, matrix = NodeParts(editor, match.product), node.inputs[0], node.inputs[1]
        places, kept = match.columns.shape
        batch = int(np.prod(node.outputs[0].shape[:-2]))
        rows = parts.reshaped(x, [batch, places, matrix.shape[0]])
        turned = parts.transposed(rows, [1, 0, 2])
        chosen = moved_constant(
            editor.new_name(f"{matrix.name}_places"),
            matrix,
            lambda array: np.ascontiguousarray(array[:, match.columns].transpose(1, 0, 2)),
        )
        product = parts.add("MatMul", turned, chosen, shape=[places, batch, kept])
        back = parts.transposed(product, [1, 0, 2])
        editor.replace(output, parts.reshaped(back, match.shape))


def _why_too_large(matrix: gs.Tensor, columns: NDArray[np.int64], saved: int) -> str | None:
    """Say why the matrices of all places would take longer to read than they save; None if they do not."""
    numbers = int(matrix.shape[0]) * columns.size
    return (
        f"a matrix for each of {len(columns)} rows would hold {numbers} numbers, more than the {saved} that would be"
        " moved no longer"
        if numbers > saved
        else None
    )


def _chain(graph: gs.Graph, tensor: gs.Tensor) -> list[gs.Node]:
    """The movements behind a tensor, each the only reader of the one before."""
    chain = list[gs.Node]()
    while len(chain) < _MOST_NODES and len(tensor.outputs) == 1:
        reader = tensor.outputs[0]
        if any(tensor is each for each in graph.outputs) or not is_op(reader, *_MOVEMENTS):
            break
        chain.append(reader)
        tensor = reader.outputs[0]
    return chain


def _moved(node: gs.Node, tensor: gs.Tensor, places: Places) -> Places | None:
    """Where the elements behind a movement come from; -1 where zeros were added."""
    if is_op(node, "Pad"):
        return _padded(node, places)
    is_movement = is_op(node, "Slice", *RESHAPES) and node.inputs[0] is tensor
    return MOVES[node.op](node, [places]) if is_movement else None


def _padded(node: gs.Node, places: Places) -> Places | None:
    around = zeros_around(node)
    if around is None:
        return None
    return np.pad(places, list(zip(*around, strict=True)), constant_values=-1)


def _columns(places: Places, shape: list[int]) -> NDArray[np.int64] | None:
    """Which columns of each row are left, by the row's place; None where rows are mixed, or all keep the same.

    Args:
        places: Of what is left, in the product.
        shape: Of the product.
    """
    size, width = shape[-2:]
    kept = places.shape[-1]
    if not places.size:
        return None
    flat = places.reshape(-1, kept)
    if flat.min() < 0 or len(flat) * width != np.prod(shape):
        return None
    rows, columns = flat // width, (flat % width).reshape(-1, size, kept)
    in_order = bool((rows == np.arange(len(flat))[:, None]).all())
    alike = bool((columns == columns[:1]).all())
    return columns[0] if in_order and alike and (columns[0] != columns[0, :1]).any() else None
