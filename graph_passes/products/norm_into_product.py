"""Move scale and shift of a normalisation into the weights of the products that read it.

    (n * g + b) @ W + c  ->  n @ W' + c'      n: rows of mean 0 and mean square 1
    W' = g W - means of its columns,  c' = c + b @ W

The columns of W' may lose their means because rows of mean 0 lose nothing by it; those behind an RMS norm keep
theirs, and have no b. What is left is a normalisation without parameters, which a product computes behind its
sums (`wpk.problems.NormedMatmul`): with columns of mean 0 nearly all of the rows' own means cancels in them.

Only where products are of 16 bits, every reader is such a product, of more rows than are multiplied while a
matrix comes, and nobody else reads the weights, which would then be kept twice.
"""

from dataclasses import dataclass, field
from functools import partial

import numpy as np
import onnx_graphsurgeon as gs
from numpy.typing import NDArray

from wpk.dtypes import DType
from wpk.file_arrays import in_file
from wpk.graph_passes.core import GraphEditor, Refusal, Rule
from wpk.graph_passes.core.derived import derived
from wpk.graph_passes.core.exact import exact_values
from wpk.graph_passes.core.query import (
    floats,
    given,
    is_graph_output,
    is_op,
    rank,
    split_constant,
    why_shared,
)
from wpk.graph_passes.fold.linear_operator import float_weight, why_not_linear
from wpk.graph_passes.products.normed_rows import NORMS, is_bare, keeps_rows, why_no_rows

_PRODUCTS = ("Gemm", "MatMul")

Array = NDArray[np.float64]


@dataclass
class _Readers:
    """Who reads normalised rows: products, through views of them."""

    products: list[gs.Node] = field(default_factory=list)
    views: list[gs.Tensor] = field(default_factory=list)


@dataclass(frozen=True)
class _Product:
    """A product of normalised rows, and what it becomes.

    Attributes:
        node: The Gemm or MatMul.
        weight: Its new weights, as they lie.
        added: To each column; None where nothing is.
    """

    node: gs.Node
    weight: Array
    added: Array | None


@dataclass(frozen=True)
class _Norm:
    """A normalisation, the views of its rows, and the products that take its parameters."""

    node: gs.Node
    views: tuple[gs.Tensor, ...]
    products: tuple[_Product, ...]


class NormIntoProduct(Rule[_Norm]):
    """Leave a normalisation without scale and shift where all its readers are products."""

    name = "norm-into-product"
    ops = NORMS
    in_double = False

    def __init__(self, storage: DType) -> None:
        """Remember the type in which products will read their factors; of 32 bits they are left alone."""
        self._storage = storage

    def match(self, graph: gs.Graph, node: gs.Node) -> _Norm | Refusal | None:
        """Match a normalisation of the last axis that only products read."""
        if self._storage.bytes != 2 or is_bare(node):
            return None
        readers = _Readers()
        reason = _gather(graph, node.outputs[0], readers)
        if not readers.products:
            return None
        reason = reason or why_no_rows(node) or _why_no_parameters(node)
        if reason is not None:
            return Refusal(node.name, reason)
        products = tuple(_folded(node, each) for each in readers.products)
        for each in products:
            asked = each.weight, self._storage
            reason = derived(
                ("why not held", self._storage), asked[:1], partial(_why_not_held, *asked)
            )
            if reason is not None:
                return Refusal(node.name, f"{reason}: '{each.node.inputs[1].name}'")
        return _Norm(node, tuple(readers.views), products)

    def rewrite(self, editor: GraphEditor, match: _Norm) -> None:
        """Write the new weights and shifts; the normalisation gets a scale of ones."""
        for each in match.products:
            (_rewrite_gemm if is_op(each.node, "Gemm") else _rewrite_matmul)(editor, each)
        node = match.node
        ones = np.ones(node.inputs[1].shape, node.inputs[1].dtype)
        node.inputs = [node.inputs[0], editor.constant(f"{node.name}_ones", ones)]
        for tensor in (node.outputs[0], *match.views):
            editor.rename(tensor, f"{tensor.name}_unscaled")


def _gather(graph: gs.Graph, tensor: gs.Tensor, readers: _Readers) -> str | None:
    """Collect who reads ``tensor``; say who reads it otherwise than as whole rows of a product."""
    if is_graph_output(graph, tensor):
        return f"'{tensor.name}' is a graph output"
    reason = None
    for reader in tensor.outputs:
        if is_op(reader, *_PRODUCTS):
            readers.products.append(reader)
            reason = reason or _why_no_product(reader, tensor)
        elif keeps_rows(reader):
            readers.views.append(reader.outputs[0])
            reason = _gather(graph, reader.outputs[0], readers) or reason
        else:
            reason = reason or f"'{tensor.name}' is also read by {reader.op} '{reader.name}'"
    return reason


def _why_no_product(product: gs.Node, tensor: gs.Tensor) -> str | None:
    if product.inputs[0] is not tensor or any(each is tensor for each in list(product.inputs)[1:]):
        return f"'{product.name}' does not read '{tensor.name}' as its rows"
    weight = product.inputs[1]
    if (reason := why_not_linear(product)) is not None:
        return reason
    if product.attrs.get("transA", 0):
        return f"'{product.name}' reads '{tensor.name}' transposed"
    if rank(weight) != 2:
        return f"'{product.name}' has a matrix for each of a batch"
    if len(weight.outputs) != 1:
        return f"'{weight.name}' has {len(weight.outputs)} readers, and would be kept twice"
    return None


def _why_no_parameters(node: gs.Node) -> str | None:
    for tensor in (given(node, 1), given(node, 2)):
        if tensor is not None and floats(tensor) is None:
            return f"'{tensor.name}' is not a constant of floats"
    return None


def _folded(norm: gs.Node, product: gs.Node) -> _Product:
    """What a product becomes; sums are in float64."""
    turned, centred = bool(product.attrs.get("transB", 0)), is_op(norm, "LayerNormalization")
    parameters = [each for each in (given(norm, 1), given(norm, 2)) if each is not None]
    sources = tuple(exact_values(each) for each in (product.inputs[1], *parameters))

    def made() -> tuple[Array, Array | None]:
        old = float_weight(product).T if turned else float_weight(product)
        scale, shift = floats(given(norm, 1)), floats(given(norm, 2))
        assert scale is not None  # `_why_no_parameters`
        weight = old * scale.reshape(-1, 1)
        if centred:
            weight = weight - weight.mean(axis=0)
        added = None if shift is None or not shift.any() else shift.reshape(-1) @ old
        return in_file(weight.T if turned else weight), added

    return _Product(product, *derived(("norm in product", turned, centred), sources, made))


def _why_not_held(weight: Array, storage: DType) -> str | None:
    """Say why the type of products holds these weights worse than others."""
    with np.errstate(over="ignore", invalid="ignore"):
        lost = np.abs(weight.astype(np.float32).astype(storage.numpy).astype(np.float64) - weight)
    largest = float(np.abs(weight).max(initial=0.0))
    if not bool(np.isfinite(lost).all()):
        return f"a weight of {largest:.3g} is more than {storage.value} reaches"
    if float(lost.max(initial=0.0)) > 2 * storage.unit_roundoff * largest:
        return f"weights of at most {largest:.3g} are too small for {storage.value}"
    return None


def _weight(editor: GraphEditor, product: _Product) -> gs.Constant:
    old = product.node.inputs[1]
    return editor.constant(f"{old.name}_normed", product.weight, old.dtype)


def _rewrite_gemm(editor: GraphEditor, product: _Product) -> None:
    node, weight = product.node, _weight(editor, product)
    bias, alpha = given(node, 2), float(node.attrs.get("alpha", 1.0))
    if product.added is not None:
        old, added = floats(bias), alpha * product.added
        total = added if old is None else old + added
        bias = editor.constant(f"{weight.name}_shift", total, weight.dtype)
    node.inputs = [node.inputs[0], weight, *([] if bias is None else [bias])]


def _rewrite_matmul(editor: GraphEditor, product: _Product) -> None:
    """What is added to columns goes into the constant that is added to them anyway, or into one of its own."""
    node, weight = product.node, _weight(editor, product)
    output = node.outputs[0]
    if product.added is None:
        node.inputs = [node.inputs[0], weight]
        return
    reader = output.outputs[0] if why_shared(editor.graph, output) is None else None
    sides = split_constant(reader) if reader is not None and is_op(reader, "Add") else None
    shift = None if sides is None else floats(sides[1])
    if reader is None or sides is None or shift is None:
        rows = editor.add("MatMul", [node.inputs[0], weight], like=output)
        shifts = editor.constant(f"{weight.name}_shift", product.added, weight.dtype)
        editor.replace(output, editor.add("Add", [rows, shifts], like=output))
        return
    shifts = editor.constant(f"{weight.name}_shift", shift + product.added, weight.dtype)
    node.inputs = [node.inputs[0], weight]
    editor.rename(output, f"{output.name}_unshifted")
    reader.inputs = [output, shifts]
