"""Which operators can be evaluated for parts of a batch, and the evaluation on all cores.

Axis 0 of a model's activations is its batch, and most operators compute each sample from that sample
alone. NumPy computes one part on one core, so a batch is cut into a part a core.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
import onnx

from wpk.checks.float64_nodes import Array

_ELEMENT_WISE = """Abs Add Cast Ceil Clip Div Elu Erf Exp Floor Gelu HardSigmoid HardSwish Identity LeakyRelu Log Max
    Min Mul Neg Pow Reciprocal Relu Round Sigmoid Sign Softplus Sqrt Sub Tanh Where"""
_WINDOWS = "AveragePool MaxPool GlobalAveragePool GlobalMaxPool"
_WEIGHTED = "BatchNormalization Conv ConvTranspose"
_ALONG_AN_AXIS = "LayerNormalization LogSoftmax Softmax"

Shapes = Mapping[str, tuple[int, ...]]


def samples(
    nodes: Sequence[onnx.NodeProto], batched: Mapping[str, Array], fixed: Mapping[str, Array]
) -> int:
    """The batch that a chain of nodes can be cut along; 1 where it cannot, or that cannot be told.

    Args:
        nodes: In order; each reads the inputs and what those before it gave.
        batched: The inputs that may have a batch.
        fixed: The others: weights.
    """
    shapes = {array.shape for array in batched.values()}
    if len({(len(shape), *shape[:1]) for shape in shapes}) != 1:
        return 1
    shape: tuple[int, ...] = next(iter(shapes))
    rank, count = len(shape), shape[0] if shape else 1
    cut, whole = set(batched), {name: array.shape for name, array in fixed.items()}
    for node in nodes:
        if node.op_type == "Constant":
            whole[node.output[0]] = _constant_shape(node)
        elif _is_by_sample(node, cut, whole, rank):
            cut |= set(node.output)
        else:
            return 1
    return count


def _is_by_sample(node: onnx.NodeProto, cut: Collection[str], whole: Shapes, rank: int) -> bool:
    """Whether a node computes each sample alone: of those that this module knows."""
    first, *others = node.input
    if first not in cut and node.op_type not in _ELEMENT_WISE.split():
        return False
    alone = len(node.output) == 1 and not set(cut) & set(others)
    match node.op_type:
        case kind if kind in _WINDOWS.split() or kind in _WEIGHTED.split():
            return alone
        case kind if kind in _ALONG_AN_AXIS.split():
            return alone and _attribute(node, "axis", -1) % rank != 0
        case "Transpose":
            return int(_attribute(node, "perm", [rank - 1])[0]) == 0
        case "MatMul":
            weight = whole.get(others[0])
            return rank >= (3 if weight is None else 2) and len(weight or ()) <= 2
        case kind if kind in _ELEMENT_WISE.split():
            broadcast = [whole[name] for name in node.input if name in whole]
            return all(len(shape) < rank or shape[0] == 1 for shape in broadcast)
    return False


def _attribute(node: onnx.NodeProto, name: str, default: Any) -> Any:
    found = [a for a in node.attribute if a.name == name]
    return onnx.helper.get_attribute_value(found[0]) if found else default


def _constant_shape(node: onnx.NodeProto) -> tuple[int, ...]:
    (attribute,) = node.attribute
    value = onnx.helper.get_attribute_value(attribute)
    return tuple(value.dims) if isinstance(value, onnx.TensorProto) else np.shape(value)


def in_parts(count: int, evaluate: Callable[[slice], Sequence[Array]]) -> tuple[Array, ...]:
    """What ``evaluate`` gives for all samples, from what it gives for parts of them.

    Args:
        count: Samples.
        evaluate: Called for several slices of the samples at once; every array that it returns has
            those samples along axis 0.
    """
    workers = min(count, len(os.sched_getaffinity(0)))
    edges = [count * place // workers for place in range(workers + 1)]
    whole = _Whole(count)

    def work(first: int, end: int) -> None:
        whole.put(first, evaluate(slice(first, end)))

    with ThreadPoolExecutor(workers) as pool:
        for done in [pool.submit(work, *pair) for pair in pairwise(edges)]:
            done.result()
    return whole.arrays


class _Whole:
    """Arrays that are put together from parts along axis 0, in any order."""

    def __init__(self, count: int) -> None:
        self._count, self._lock = count, threading.Lock()
        self.arrays: tuple[Array, ...] = ()

    def put(self, first: int, parts: Sequence[Array]) -> None:
        with self._lock:
            self.arrays = self.arrays or tuple(
                np.empty((self._count, *part.shape[1:]), part.dtype) for part in parts
            )
        for array, part in zip(self.arrays, parts, strict=True):
            array[first : first + len(part)] = part
