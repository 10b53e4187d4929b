"""Kernels that several tests compile; plain CUDA C++, so that they depend on no header of wpk."""

from collections.abc import Callable

import pytest

from wpk.build import load_nvrtc
from wpk.build.nvrtc import Nvrtc
from wpk.kernel_source import KernelSource

_FILL = """
extern "C" __global__ void __launch_bounds__(256) fill(float* out) {{
    out[threadIdx.x] = {value};
}}
"""


@pytest.fixture(scope="session")
def nvrtc() -> Nvrtc:
    return load_nvrtc()


@pytest.fixture(scope="session")
def fill() -> Callable[[int], KernelSource]:
    """Distinct one-line kernels named ``fill``, by the value that they write."""
    return lambda value: KernelSource("fill", _FILL.format(value=value))


@pytest.fixture(scope="session")
def broken() -> KernelSource:
    return KernelSource("broken", 'extern "C" __global__ void broken() { undeclared(); }')


@pytest.fixture(scope="session")
def spilling() -> KernelSource:
    """Holds 96 values a thread where the launch bound leaves 32 registers."""
    text = """
    extern "C" __global__ void __launch_bounds__(1024, 2) spilling(float* out) {
        float kept[96];
        for (int i = 0; i < 96; ++i) kept[i] = out[i * 1024 + threadIdx.x];
        __syncthreads();
        for (int i = 0; i < 96; ++i)
            for (int j = 0; j < 96; j += 7) kept[i] += kept[j] * kept[(i * 7) % 96];
        for (int i = 0; i < 96; ++i) out[i * 1024 + threadIdx.x] = kept[i];
    }
    """
    return KernelSource("spilling", text)


@pytest.fixture(scope="session")
def endless() -> KernelSource:
    """Expands to 2^20 statements: takes a compiler far longer than any limit of these tests."""
    doublings = "\n".join(f"#define A{i + 1} A{i} A{i}" for i in range(20))
    body = "#define A0 x = x * x + y; y = y * x + 1;"
    kernel = 'extern "C" __global__ void endless(float* p) { float x = *p, y = p[1]; A20 *p = x; }'
    return KernelSource("endless", f"{body}\n{doublings}\n{kernel}")
