"""A model's external data: small tensors are read into the model, large ones are used where they lie."""

import os
from collections.abc import Iterator
from math import prod
from pathlib import Path

import numpy as np
import onnx
import onnx_graphsurgeon as gs
from onnx.external_data_helper import (
    ExternalDataInfo,
    load_external_data_for_tensor,
    uses_external_data,
)

from wpk.dtypes import DType, from_numpy
from wpk.file_arrays import LARGE_BYTES, MappedFiles

_PLAIN = tuple(each for each in DType if each is not DType.BF16 and not each.is_fp8)
"""Types that NumPy has itself, so that graphsurgeon knows them."""


def lies_beside(tensor: onnx.TensorProto) -> bool:
    """Whether an initializer's data stay in a file beside the model: it is large, and of a type that NumPy has."""
    dtype = _dtype(tensor)
    return (
        uses_external_data(tensor)
        and is_plain(tensor)
        and prod(tensor.dims) * dtype.itemsize >= LARGE_BYTES
    )


def is_plain(tensor: onnx.TensorProto) -> bool:
    """Whether an initializer is of a type that NumPy has itself, so that graphsurgeon knows it."""
    return from_numpy(_dtype(tensor)) in _PLAIN


def load_beside(model: onnx.ModelProto, folder: Path) -> None:
    """Read all external data but those that stay where they lie, which are looked at.

    Args:
        model: A valid model: `onnx.checker` found its files in the folder, and nowhere else.
        folder: Where it lies.

    Raises:
        OSError, ValueError: Data are missing, or are not as long as they should be.
    """
    for tensor in model.graph.initializer:
        if lies_beside(tensor):
            _require_there(tensor, folder)
        else:
            _load(tensor, folder)
    nodes = [*model.graph.node, *(node for function in model.functions for node in function.node)]
    for tensor in (each for node in nodes for each in _of_node(node)):
        _load(tensor, folder)


def give_weights(graph: gs.Graph, model: onnx.GraphProto, folder: Path) -> None:
    """Give the constants of an imported graph their data where those stay beside the model.

    Args:
        graph: What graphsurgeon made of the model.
        model: The model, after `load_beside`.
        folder: As there.
    """
    files, tensors = MappedFiles(), graph.tensors()
    for tensor in model.initializer:
        if lies_beside(tensor) and tensor.name in tensors:
            place = ExternalDataInfo(tensor)
            start = folder / place.location, place.offset or 0
            tensors[tensor.name].values = files.array(*start, _dtype(tensor), tuple(tensor.dims))
            tensors[tensor.name].data_location = None


def _require_there(tensor: onnx.TensorProto, folder: Path) -> None:
    place, needed = ExternalDataInfo(tensor), prod(tensor.dims) * _dtype(tensor).itemsize
    size = os.stat(folder / place.location).st_size - (place.offset or 0)
    found = size if place.length is None else place.length
    if found > size or found != needed:
        raise ValueError(
            f"tensor '{tensor.name}' of {needed} bytes has {min(found, max(size, 0))} bytes of data in "
            f"{place.location}"
        )


def _dtype(tensor: onnx.TensorProto) -> np.dtype:
    return np.dtype(onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type))


def _load(tensor: onnx.TensorProto, folder: Path) -> None:
    if uses_external_data(tensor):
        load_external_data_for_tensor(tensor, str(folder))


def _of_node(node: onnx.NodeProto) -> Iterator[onnx.TensorProto]:
    """Yield the tensors of a node's attributes, and of its subgraphs."""
    for attribute in node.attribute:
        if attribute.HasField("t"):
            yield attribute.t
        yield from attribute.tensors
        for inner in (attribute.g, *attribute.graphs):
            yield from _of_graph(inner)


def _of_graph(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    yield from graph.initializer
    for node in graph.node:
        yield from _of_node(node)
