"""Kernels under AddressSanitizer and UndefinedBehaviorSanitizer, in a process of their own."""

from collections.abc import Iterator

import numpy as np
import pytest

from wpk.emulator import SANITIZED, Emulator, EmulatorError, EmulatorProcess
from wpk.execution import BoundLaunch, KernelImage, Pointer
from wpk.kernel_source import KernelSource

COUNT = 50
KERNEL = """
#include <wpk/kernels/portable.cuh>
WPK_KERNEL(64) touch(const int* x, int* y, int n)
{
    WPK_SHARED(int, shared);
    const int i = static_cast<int>(threadIdx.x);
    if (i < n)
    {
        shared[i] = x[i];
        y[i] = shared[i] + 1;
    }
}
WPK_EXPORT(touch)
"""
FAULTS = {
    "reads an element behind its input": ("x[i];", "x[i + 1];", "use-after-poison"),
    "reads an element before its input": ("x[i];", "x[i - 1];", "use-after-poison"),
    "writes an element behind its output": ("y[i] =", "y[i + 1] =", "use-after-poison"),
    "reads behind its shared memory": ("shared[i] + 1", "shared[i + 1] + 1", "use-after-poison"),
    "writes before its shared memory": ("shared[i] = x", "shared[i - 1] = x", "use-after-poison"),
    "overflows": ("shared[i] + 1", "shared[i] * 100000000 * i", "signed integer overflow"),
    "reads an address that is not aligned": (
        "shared[i] + 1",
        "*reinterpret_cast<const int*>(reinterpret_cast<const char*>(shared) + 1)",
        "misaligned address",
    ),
    "shifts too far": ("shared[i] + 1", "shared[i] << (i + 32)", "shift exponent"),
    "reads far outside": ("x[i];", "x[i + 2000000];", "illegal address"),
}


@pytest.fixture
def process() -> Iterator[EmulatorProcess]:
    with EmulatorProcess(SANITIZED, threads=1) as device:
        yield device


def _execute(device: EmulatorProcess | Emulator, text: str) -> np.ndarray:
    source = KernelSource("touch", text)
    device.load(KernelImage(source.digest, source, b""))
    x, y = device.allocate(COUNT * 4), device.allocate(COUNT * 4)
    device.write(x, np.arange(1, COUNT + 1, dtype=np.int32).view(np.uint8))
    grid, block, cluster = (1, 1, 1), (64, 1, 1), (1, 1, 1)
    arguments = (Pointer(x), Pointer(y), COUNT)
    device.launch(
        BoundLaunch(
            source.digest, source.entry, grid, block, cluster, COUNT * 4, arguments, attributes=()
        )
    )
    return device.read(y, COUNT * 4).view(np.int32)


def test_a_right_kernel_runs(process: EmulatorProcess) -> None:
    np.testing.assert_array_equal(_execute(process, KERNEL), np.arange(2, COUNT + 2))


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_wrong_is_reported(process: EmulatorProcess, fault: str) -> None:
    old, new, said = FAULTS[fault]
    assert KERNEL.count(old) == 1
    with pytest.raises(EmulatorError, match=said):
        _execute(process, KERNEL.replace(old, new))


def test_a_process_without_sanitizers_says_where_they_are(tmp_path: object) -> None:
    device = Emulator(SANITIZED)
    with pytest.raises(EmulatorError) as refused:
        _execute(device, KERNEL)
    assert "EmulatorProcess" in refused.value.fix
