import random
from collections.abc import Callable

import pytest

from wpk.build.cubin import read_cubin
from wpk.build.nvrtc import Nvrtc
from wpk.errors import CompileError
from wpk.kernel_source import KernelSource

SHARED = """
extern "C" __global__ void __launch_bounds__(64) shifted(float* out) {
    __shared__ float row[64];
    row[threadIdx.x] = out[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = row[(threadIdx.x + 5) & 63];
}
"""

Fill = Callable[[int], KernelSource]


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_agrees_with_the_report_of_ptxas(nvrtc: Nvrtc, arch: str) -> None:
    compiled = nvrtc.compile(KernelSource("shifted", SHARED), arch)
    kernel = read_cubin(compiled.cubin)["shifted"]
    assert kernel.registers == compiled.resources.registers > 0
    assert compiled.resources.static_shared_bytes == 256
    assert kernel.frame_bytes == 0
    assert len(kernel.code) % 16 == 0
    assert len(kernel.code) > 0


def test_a_spilling_kernel_has_a_frame(nvrtc: Nvrtc, spilling: KernelSource) -> None:
    compiled = nvrtc.compile(spilling, "sm_90a")
    assert read_cubin(compiled.cubin)["spilling"].frame_bytes == compiled.resources.stack_bytes > 0
    assert compiled.resources.spills


@pytest.mark.parametrize("data", [b"", b"\x7fELF", b"\x7fELF\x02" + bytes(59), b"PK\x03\x04" * 99])
def test_refuses_what_is_no_cubin(data: bytes) -> None:
    with pytest.raises(CompileError, match="no readable cubin"):
        read_cubin(data)


def test_a_damaged_cubin_gives_an_error_or_a_reading_and_nothing_else(
    nvrtc: Nvrtc, fill: Fill
) -> None:
    cubin = nvrtc.compile(fill(1), "sm_90a").cubin
    generator = random.Random(5)
    refused = 0
    for _ in range(300):
        damaged = bytearray(cubin[: generator.randrange(len(cubin))])
        for _ in range(generator.randrange(20)):
            if damaged:
                damaged[generator.randrange(len(damaged))] = generator.randrange(256)
        try:
            read_cubin(bytes(damaged))
        except CompileError:
            refused += 1
    assert refused > 0
