"""Adding the nodes that stand for one node, whose names begin with its."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnx_graphsurgeon as gs
from numpy.typing import ArrayLike, DTypeLike

from wpk.dtypes import is_fp8
from wpk.graph_passes.core.editor import GraphEditor
from wpk.graph_passes.core.query import Dims, dims, element_type
from wpk.graph_passes.core.reshape_target import target_of


class NodeParts:
    """Adds the nodes that stand for one node."""

    def __init__(self, editor: GraphEditor, node: gs.Node) -> None:
        self.editor, self.node = editor, node

    def add(
        self,
        op: str,
        *inputs: gs.Tensor,
        shape: Dims | None = None,
        like: gs.Tensor | None = None,
        dtype: DTypeLike | None = None,
        **attributes: Any,
    ) -> gs.Variable:
        """Add a node; its result has the shape and type of the first input, where no other is named.

        Args:
            op: Standard ONNX operator.
            inputs: Tensors it reads.
            shape: Of its result.
            like: Gives its result type, and its shape unless that is given.
            dtype: NumPy's type of its result, ahead of ``like``.
            attributes: Of the node.
        """
        kind, name = inputs[0] if like is None else like, f"{self.node.name}_{op}"
        made = self.editor.add(
            op, list(inputs), like=kind, shape=shape, name=name, attrs=attributes
        )
        if dtype is not None:
            made.dtype = np.dtype(dtype)
        return made

    def ints(self, values: ArrayLike) -> gs.Constant:
        """Make a constant of int64: sizes, axes, places."""
        return self.editor.constant(f"{self.node.name}_ints", np.array(values, np.int64))

    def reshaped(self, x: gs.Tensor, shape: Sequence[int | str | None]) -> gs.Tensor:
        """Return ``x`` in another shape, of which one size may be free.

        A free size that ``x`` has at the same place stays what it is (0); any other, such as the product of a free
        batch and something else, is what is left of the elements (-1).
        """
        target = target_of(dims(x) or [], list(shape))
        if target is None:
            raise ValueError(f"'{x.name}' of shape {x.shape} has several free sizes in {shape}")
        return self.add("Reshape", x, self.ints(target), shape=list(shape))

    def transposed(self, x: gs.Tensor, perm: Sequence[int]) -> gs.Tensor:
        """Return ``x`` with its axes in another order."""
        shape = [x.shape[axis] for axis in perm]
        return self.add("Transpose", x, shape=shape, perm=list(perm))

    def cast(self, x: gs.Tensor, dtype: DTypeLike, **attributes: Any) -> gs.Tensor:
        """Return ``x`` in another of the types that NumPy or kernels have."""
        wanted = np.dtype(dtype)
        to = onnx.helper.np_dtype_to_tensor_dtype(wanted)
        kept = to if is_fp8(wanted) else wanted
        if element_type(x) == kept:
            return x
        made = self.add("Cast", x, to=to, **attributes)
        made.dtype = kept
        return made
