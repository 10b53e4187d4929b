"""Whole kernels: tiled matrix products and a convolution, exact on small integers."""

import os
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from support.faults.planter import change, put, together

from wpk.emulator import CHECKING, FAST, Mode

both_modes = pytest.mark.parametrize("mode", [FAST, CHECKING], ids=["fast", "checking"])

SHAPES = [(64, 64, 32), (128, 128, 128), (100, 72, 40), (1, 8, 8), (65, 136, 200), (33, 8, 1024)]


@both_modes
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_pipelined_mma_product_is_exact(multiply_mma, mode: Mode, shape):
    product, expected, _ = multiply_mma(shape, mode)
    np.testing.assert_array_equal(product, expected)


@both_modes
def test_a_bfloat16_mma_product_is_exact(multiply_mma, mode: Mode):
    edit = change("element", "Half", "Bfloat16")
    product, expected, _ = multiply_mma((65, 136, 200), mode, edit, ml_dtypes.bfloat16)
    np.testing.assert_array_equal(product, expected)


def test_swizzled_tiles_have_no_bank_conflicts(multiply_mma):
    _, _, done = multiply_mma((130, 200, 328), Mode(count_banks=True))
    assert done.phases["matrix_load"] > 0
    assert done.conflicts == {"load": 0, "store": 0, "matrix_load": 0, "copy": 0}


def test_unswizzled_tiles_have_the_conflicts_of_their_row_stride(multiply_mma):
    edit = together(
        put("place_in_a", "return (row * kChunksA + chunk) * 16;"),
        put("place_in_b", "return (row * kChunksB + chunk) * 16;"),
    )
    product, expected, done = multiply_mma((64, 64, 64), Mode(count_banks=True), edit)
    np.testing.assert_array_equal(product, expected)
    # Rows of A are 64 bytes apart: four of eight share a bank group (3 extra passes). Rows of B are
    # 128 bytes apart: all eight do (7 extra). Each fragment loads two matrices of either: 2 x 4 phases.
    assert done.conflicts["matrix_load"] == done.phases["matrix_load"] * (3 + 7) / 2
    assert done.conflicts["load"] == done.conflicts["store"] == 0


@both_modes
@pytest.mark.parametrize("shape", [(128, 128, 64), (256, 128, 520), (100, 72, 200)], ids=str)
def test_a_warp_specialised_wgmma_product_is_exact(multiply_wgmma, mode: Mode, shape):
    product, expected, _ = multiply_wgmma(shape, mode)
    np.testing.assert_array_equal(product, expected)


def test_a_bfloat16_wgmma_product_is_exact(multiply_wgmma):
    edit = change("products", "Half", "Bfloat16")
    product, expected, _ = multiply_wgmma((100, 72, 200), FAST, edit, ml_dtypes.bfloat16)
    np.testing.assert_array_equal(product, expected)


@both_modes
def test_a_direct_convolution_on_ordinary_cores_is_exact(emulate, mode: Mode):
    images, channels, size, filters = 2, 8, 16, 32
    random = np.random.default_rng(0)
    x = random.integers(-4, 5, (images, channels, size, size)).astype(np.float32)
    w = random.integers(-4, 5, (filters, channels, 3, 3)).astype(np.float32)
    y = np.full((images, filters, size, size), np.nan, np.float32)
    arguments = [x, w, y, channels, size, size, filters]
    emulate("conv_direct", "conv_direct", arguments, grid=(2, 2, images), threads=256, mode=mode)
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    np.testing.assert_array_equal(y, np.einsum("nchwrs,kcrs->nkhw", windows, w))


def test_results_do_not_depend_on_the_mode(multiply_mma):
    fast, _, _ = multiply_mma((130, 200, 328), FAST)
    checked, _, _ = multiply_mma((130, 200, 328), CHECKING)
    np.testing.assert_array_equal(fast, checked)


@pytest.mark.slow
def test_products_are_exact_on_a_processor_without_avx(tmp_path: Path):
    """The runtime library has a path of its own there; a process holds one runtime, so it takes another."""
    compiler = tmp_path / "baseline-g++"
    compiler.write_text(
        '#!/bin/bash\nset -- "${@/#-march=native/-march=x86-64}"; exec g++ "${@/#-O3/-O1}"\n'
    )
    compiler.chmod(0o755)
    tests = Path(__file__).with_name("test_primitives.py")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", tests, "-k", "multiplies"],
        env={**os.environ, "CXX": str(compiler), "XDG_CACHE_HOME": str(tmp_path)},
        cwd=tests.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
