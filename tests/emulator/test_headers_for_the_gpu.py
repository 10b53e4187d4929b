"""The portable headers and the fixture kernels compile with NVRTC too, unchanged."""

from pathlib import Path

import pytest

from wpk.build import load_nvrtc
from wpk.kernel_source import KernelSource

KERNELS = Path(__file__).parent / "kernels"
ENTRIES = {"primitives": "mma_tf32"}  # of the units with several kernels; else the file's name


def _unit(name: str) -> KernelSource:
    text = (KERNELS / f"{name}.cu").read_text(encoding="utf-8")
    return KernelSource(ENTRIES.get(name, name), text)


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_100a"])
@pytest.mark.parametrize("name", ["gemm_mma", "conv_direct", "primitives"])
def test_compiles_for_the_gpu(name: str, arch: str):
    compiled = load_nvrtc().compile(_unit(name), arch)
    assert compiled.resources.registers > 0


def test_compiles_the_headers_of_sm_90():
    compiled = load_nvrtc().compile(_unit("gemm_wgmma"), "sm_90a")
    assert compiled.resources.registers > 0


@pytest.mark.parametrize("columns", [64, 256])
def test_compiles_every_width_of_wgmma(columns: int):
    text = _unit("gemm_wgmma").text.replace("kBlockN = 128", f"kBlockN = {columns}")
    load_nvrtc().compile(KernelSource("gemm_wgmma", text), "sm_90a")


def test_vector_accesses_are_single_instructions():
    """Sixteen bytes a thread must not fall apart into scalar loads; registers would show it, too."""
    unit = KernelSource(
        "copy16",
        "#include <wpk/kernels/scalar.cuh>\n#include <wpk/kernels/vector.cuh>\n"
        "WPK_KERNEL(32) copy16(const wpk::Half* x, wpk::Half* y)\n{\n"
        "    wpk::store(y + 8 * threadIdx.x, wpk::load<wpk::Half, 8>(x + 8 * threadIdx.x));\n}\n",
    )
    assert load_nvrtc().compile(unit, "sm_80").resources.registers <= 12
