"""What is said of arrays that go to the process and come back, and which ONNX Runtime this is."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from math import prod

import numpy as np
from numpy.typing import NDArray

from wpk.dtypes import DType, from_numpy
from wpk.errors import EngineError, LaunchError
from wpk.execution import Bytes

Array = NDArray[np.generic]

RUNTIME = "ONNX Runtime"
"""What plans and reports call it."""

_ALIGNMENT = 64


class RefusedInputsError(LaunchError):
    """ONNX Runtime does not execute a model on what it is given; the process goes on."""


def runtime_version() -> str:
    """Return the version that is installed.

    Raises:
        EngineError: None is.
    """
    try:
        return version("onnxruntime")
    except PackageNotFoundError as error:
        raise EngineError(
            "some nodes of the model have no kernel, and onnxruntime, which executes them, is not installed",
            fix="pip install onnxruntime, or refuse such models with --fallback off",
        ) from error


@dataclass(frozen=True)
class ArrayForm:
    """An array whose bytes lie elsewhere.

    Attributes:
        dtype: Its element type.
        shape: Its extents.
    """

    dtype: DType
    shape: tuple[int, ...]

    @property
    def bytes(self) -> int:
        """Its size."""
        return prod(self.shape) * self.dtype.bytes


def form_of(array: Array) -> ArrayForm | None:
    """Return what is said of an array; None for one of another type."""
    dtype = from_numpy(array.dtype)
    return None if dtype is None else ArrayForm(dtype, array.shape)


def total_bytes(forms: Sequence[ArrayForm]) -> int:
    """Return the memory that arrays take beside each other."""
    return sum(-(-form.bytes // _ALIGNMENT) * _ALIGNMENT for form in forms)


def placed(forms: Sequence[ArrayForm], memory: Bytes) -> Iterator[Array]:
    """Yield the arrays that lie beside each other in memory."""
    begin = 0
    for form in forms:
        data = memory[begin : begin + form.bytes]
        yield data.view(form.dtype.numpy).reshape(form.shape)
        begin += -(-form.bytes // _ALIGNMENT) * _ALIGNMENT
