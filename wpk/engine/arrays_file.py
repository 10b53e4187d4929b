"""Arrays by name in an ``.npz`` file, as a person gives inputs and takes outputs."""

import zipfile
from collections.abc import Mapping
from pathlib import Path

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from wpk.dtypes import is_fp8
from wpk.errors import EngineError
from wpk.plan import atomic_file


def read_arrays(path: Path) -> dict[str, NDArray[np.generic]]:
    """Read all arrays of a file; nothing in it is executed.

    bf16, which NumPy stores as bytes of two, is recognised; single bytes are what their reader takes them for.

    Raises:
        EngineError: The file cannot be read, or holds something that is no array.
    """
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {name: _typed(archive[name]) for name in archive.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, AttributeError, TypeError) as error:
        raise EngineError(
            f"{path} cannot be read as arrays: {error}",
            fix="write it with numpy.savez(path, input_name=array)",
        ) from error


def write_arrays(path: Path, arrays: Mapping[str, NDArray[np.generic]]) -> None:
    """Write arrays atomically, under any names: ``numpy.savez`` takes some for its own parameters.

    8-bit floating point, whose types NumPy does not read back, is written as raw bytes.

    Raises:
        OutputError: The file cannot be written.
    """
    with atomic_file(path) as stream, zipfile.ZipFile(stream, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                raw = array.view("V1") if is_fp8(array.dtype) else array
                np.lib.format.write_array(member, raw, allow_pickle=False)


def _typed(array: NDArray[np.generic]) -> NDArray[np.generic]:
    return array.view(ml_dtypes.bfloat16) if array.dtype == np.dtype("V2") else array
