"""Reference operators that read and write by index tensors.

onnx's own cannot do it for all shapes and types, or go through their updates one by one in Python.
"""

from typing import Any

import numpy as np
from onnx.reference.op_run import OpRun


class GatherElements(OpRun):
    """``y[i, j] = data[index[i, j], j]``, and the like along other axes.

    onnx 1.23's wants data and index of one size along the other axes. Attribute: ``axis``.
    """

    def _run(self, data: Any, index: Any, axis: int = 0) -> tuple[Any]:
        places = [slice(0, size) for size in index.shape]
        places[axis] = slice(None)
        return (np.take_along_axis(data[tuple(places)], index, axis),)


class ScatterElements(OpRun):
    """``y = data; y[index[i, j], j] = updates[i, j]``, and the like along other axes, in their order.

    Attributes: ``axis``, ``reduction``.
    """

    def _run(
        self, data: Any, index: Any, updates: Any, axis: int = 0, reduction: str | None = None
    ) -> tuple[Any]:
        places = list(np.indices(index.shape, sparse=True))
        places[axis] = index
        return (_written(data, tuple(places), updates, reduction),)


class ScatterND(OpRun):
    """``y = data; y[index[i]] = updates[i]`` for tuples of indices, in their order.

    Attribute: ``reduction``.
    """

    def _run(self, data: Any, index: Any, updates: Any, reduction: str | None = None) -> tuple[Any]:
        return (_written(data, tuple(np.moveaxis(index, -1, 0)), updates, reduction),)


class OneHot(OpRun):
    """The second of ``values`` where the index is, cast to an integer, and the first elsewhere.

    onnx 1.23's subtracts booleans, and does not cast. Attribute: ``axis``.
    """

    def _run(self, index: Any, depth: Any, values: Any, axis: int = -1) -> tuple[Any]:
        size = int(np.ravel(depth)[0])
        places = np.expand_dims(index.astype(np.int64), axis)
        shape = [1] * places.ndim
        shape[axis] = size
        hot = np.arange(size).reshape(shape) == np.where(places < 0, places + size, places)
        return (np.where(hot, values[1], values[0]),)


def _written(data: Any, places: tuple[Any, ...], updates: Any, reduction: str | None) -> Any:
    y = np.array(data)
    if reduction in (None, "none"):
        y[places] = updates
    else:
        ufuncs = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}
        ufuncs[reduction].at(y, places, updates)
    return y
