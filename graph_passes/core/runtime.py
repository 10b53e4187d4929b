"""ONNX Runtime on models as they are."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from functools import cache
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

import ml_dtypes
import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto

from wpk.errors import GraphError
from wpk.graph_passes.core.unsigned_bytes import PRODUCTS, two_terms, with_unsigned_bytes

if TYPE_CHECKING:
    import onnxruntime

_FOLDER_OF_WEIGHTS = "session.model_external_initializers_file_folder_path"


def open_session(model: str | bytes, threads: int = 0) -> onnxruntime.InferenceSession:
    """Open a session that executes a model's own nodes on the CPU.

    ONNX Runtime's rewriting is left out, since it is no more to be believed than ours; what goes wrong is
    said once, by the error that is raised. Where it cuts sums of bytes on this CPU, they are made unsigned
    (`with_unsigned_bytes`).

    Args:
        model: The path of a model's file, or the model itself, serialized.
        threads: Cores that one node may take; 0 leaves them to ONNX Runtime.

    Raises:
        GraphError: ONNX Runtime is not installed.
    """
    folder = None
    if _cuts_sums():
        model, folder = _unsigned(model)
    return _opened(model, threads, folder)


def _opened(
    model: str | bytes, threads: int = 0, folder: Path | None = None
) -> onnxruntime.InferenceSession:
    """Open a session; ``folder`` is that of the weights of a serialized model, if it has some in files."""
    try:
        import onnxruntime  # only here: who checks nothing needs none
    except ImportError as error:
        raise GraphError(
            f"executing nodes needs onnxruntime, which cannot be imported: {error}",
            fix="pip install onnxruntime",
        ) from error
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = threads
    options.log_severity_level = 4
    # Weights in a file of their own are used where they lie, not copied into another order.
    options.add_session_config_entry("session.disable_prepacking", "1")
    if folder is not None:
        options.add_session_config_entry(_FOLDER_OF_WEIGHTS, str(folder))
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


@cache
def _cuts_sums() -> bool:
    """Whether ONNX Runtime cuts sums of products of unsigned and signed bytes on this CPU."""
    model, inputs, total = two_terms()
    (found,) = _opened(model).run(None, inputs)
    return int(found.item()) != total


def _unsigned(model: str | bytes) -> tuple[str | bytes, Path | None]:
    """The model with unsigned bytes where it multiplies signed ones, and the folder of its weights; else as it was."""
    if isinstance(model, str):
        loaded, folder = onnx.load(model, load_external_data=False), Path(model).resolve().parent
    elif any(name.encode() in model for name in PRODUCTS):
        loaded, folder = onnx.load_model_from_string(model), None
    else:
        return model, None
    changed = with_unsigned_bytes(loaded)
    return (model, None) if changed is None else (changed.SerializeToString(), folder)


_FLOAT8 = {
    np.dtype(ml_dtypes.float8_e4m3fn): TensorProto.FLOAT8E4M3FN,
    np.dtype(ml_dtypes.float8_e5m2): TensorProto.FLOAT8E5M2,
}
_GIVEN = {
    "tensor(float8e4m3fn)": np.dtype(ml_dtypes.float8_e4m3fn),
    "tensor(float8e5m2)": np.dtype(ml_dtypes.float8_e5m2),
}


def run_session(
    session: onnxruntime.InferenceSession,
    inputs: Mapping[str, NDArray[np.generic]],
    names: Sequence[str] | None = None,
) -> list[NDArray[np.generic]]:
    """Execute a session on arrays; those of 8-bit floating point, which it knows as bytes, have `ml_dtypes`' types.

    Args:
        session: What to execute.
        inputs: The arrays by name.
        names: The outputs to return; all by default.
    """
    types = {output.name: output.type for output in session.get_outputs()}
    wanted = list(types if names is None else names)
    feed = {name: _given(array) for name, array in inputs.items()}
    if not any(types[name] in _GIVEN for name in wanted):
        return list(session.run(wanted, feed))
    held = {name: _held(array) for name, array in feed.items()}
    found = session.run_with_ort_values(wanted, held)
    return [_taken(each, types[name]) for name, each in zip(wanted, found, strict=True)]


def _given(array: NDArray[np.generic]) -> NDArray[np.generic] | onnxruntime.OrtValue:
    """An array as a session takes it: of 8-bit floating point it has to be told the type."""
    if array.dtype not in _FLOAT8:
        return array
    import onnxruntime  # there is a session

    bits = np.ascontiguousarray(array).reshape(array.shape).view(np.uint8)
    return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, _FLOAT8[array.dtype])


def _held(array: NDArray[np.generic] | onnxruntime.OrtValue) -> onnxruntime.OrtValue:
    import onnxruntime  # there is a session

    is_held = isinstance(array, onnxruntime.OrtValue)
    return array if is_held else onnxruntime.OrtValue.ortvalue_from_numpy(array)


def _taken(value: onnxruntime.OrtValue, kind: str) -> NDArray[np.generic]:
    """What a session gave; ONNX Runtime makes no array of E5M2, so that its bytes are copied."""
    if kind not in _GIVEN:
        return np.asarray(value.numpy())
    shape = value.shape()
    held = ctypes.string_at(value.data_ptr(), prod(shape))
    return np.frombuffer(held, _GIVEN[kind]).reshape(shape).copy()
