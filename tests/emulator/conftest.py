"""Compile a fixture kernel for the CPU and execute it; products are of small integers, so exact."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from support.faults.planter import Edit, whole
from support.launches.on_arrays import Value, guarded, launch_on_arrays

from wpk.emulator import FAST, Mode
from wpk.emulator.build import compile_unit
from wpk.emulator.native import Statistics
from wpk.execution import TensorMap
from wpk.kernel_source import KernelSource

KERNELS = Path(__file__).parent / "kernels"

Matrix = npt.NDArray[np.generic]
Product = tuple[Matrix, Matrix, Statistics]
"""What a kernel multiplied, and the right product."""


def _emulate(
    file: str,
    entry: str,
    arguments: Sequence[Value],
    *,
    grid: tuple[int, int, int] = (1, 1, 1),
    threads: int = 32,
    block: tuple[int, int, int] | None = None,
    shared_bytes: int = 0,
    mode: Mode = FAST,
    edit: Edit = whole,
    seed: int = 0,
) -> Statistics:
    text = edit((KERNELS / f"{file}.cu").read_text(encoding="utf-8"))
    library = compile_unit(KernelSource(file, text), checking=mode.checking)
    shape = block or (threads, 1, 1)
    return launch_on_arrays(library, entry, grid, shape, shared_bytes, arguments, mode, seed=seed)


@pytest.fixture(name="emulate", scope="session")
def _emulate_fixture() -> Callable[..., Statistics]:
    """Executes ``entry`` of kernels/``file``.cu, after an edit of its text."""
    return _emulate


def _integers(shape: tuple[int, int], seed: int, dtype: npt.DTypeLike) -> npt.NDArray[np.generic]:
    return guarded(np.random.default_rng(seed).integers(-4, 5, shape).astype(dtype))


def _multiply_mma(
    shape: tuple[int, int, int],
    mode: Mode = FAST,
    edit: Edit = whole,
    dtype: npt.DTypeLike = np.float16,
    shared_bytes: int | None = None,
) -> Product:
    m, n, k = shape
    a, b = _integers((m, k), 0, dtype), _integers((k, n), 1, dtype)
    c = guarded(np.full((m, n), np.nan, np.float32))
    done = _emulate(
        "gemm_mma",
        "gemm_mma",
        [a.view(np.uint16), b.view(np.uint16), c, m, n, k],
        grid=(-(-n // 64), -(-m // 64), 1),
        threads=128,
        shared_bytes=3 * (64 * 32 + 32 * 64) * 2 if shared_bytes is None else shared_bytes,
        mode=mode,
        edit=edit,
    )
    return c, a.astype(np.float32) @ b.astype(np.float32), done


def _multiply_wgmma(
    shape: tuple[int, int, int],
    mode: Mode = FAST,
    edit: Edit = whole,
    dtype: npt.DTypeLike = np.float16,
    shared_bytes: int | None = None,
) -> Product:
    m, n, k = shape
    a, b = _integers((m, k), 0, dtype), _integers((n, k), 1, dtype)
    c = guarded(np.full((m, n), np.nan, np.float32))
    maps = [
        TensorMap(x.ctypes.data, 2, x.shape[::-1], (x.strides[0],), (64, 128), 128) for x in (a, b)
    ]
    done = _emulate(
        "gemm_wgmma",
        "gemm_wgmma",
        [*maps, c, m, n, k],
        grid=(-(-n // 128), -(-m // 128), 1),
        threads=384,
        shared_bytes=3 * (2 * 128 * 64 * 2 + 16) if shared_bytes is None else shared_bytes,
        mode=mode,
        edit=edit,
    )
    return c, a.astype(np.float32) @ b.astype(np.float32).T, done


@pytest.fixture(name="multiply_mma", scope="session")
def _multiply_mma_fixture() -> Callable[..., Product]:
    """Multiplies small integers with mma."""
    return _multiply_mma


@pytest.fixture(name="multiply_wgmma", scope="session")
def _multiply_wgmma_fixture() -> Callable[..., Product]:
    """Multiplies small integers with wgmma."""
    return _multiply_wgmma
