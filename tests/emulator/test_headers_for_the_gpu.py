"""The portable headers and the fixture kernels compile with NVRTC too, unchanged."""

import re
from pathlib import Path

import pytest

import wpk
from wpk.build import load_nvrtc
from wpk.kernel_source import KernelSource

GENERIC_LAMBDA = re.compile(r"\]<|\]\([^()]*\bauto\b")
"""NVRTC 13.0 takes its body for a host function and refuses it; later ones do not."""

KERNELS = Path(__file__).parent / "kernels"
ENTRIES = {"primitives": "mma_tf32"}  # of the units with several kernels; else the file's name


def _unit(name: str) -> KernelSource:
    text = (KERNELS / f"{name}.cu").read_text(encoding="utf-8")
    return KernelSource(ENTRIES.get(name, name), text)


def test_headers_compile_with_the_oldest_nvrtc_that_is_allowed():
    headers = list(Path(wpk.__file__).parent.rglob("*.cuh"))
    assert len(headers) > 50
    found = [each.name for each in headers if GENERIC_LAMBDA.search(each.read_text("utf-8"))]
    assert not found, "write the type of the lambda's parameter, decltype(...) where it has no name"


@pytest.mark.parametrize(
    "head", ["[=](const auto& tile)", "[&](int i,\n    auto x)", "[]<class T>(T)"]
)
def test_a_generic_lambda_is_seen(head: str):
    assert GENERIC_LAMBDA.search(f"const auto window = {head}")


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
        "#include <wpk/kernels/numbers/scalar.cuh>\n#include <wpk/kernels/copies/vector.cuh>\n"
        "WPK_KERNEL(32) copy16(const wpk::Half* x, wpk::Half* y)\n{\n"
        "    wpk::store(y + 8 * threadIdx.x, wpk::load<wpk::Half, 8>(x + 8 * threadIdx.x));\n}\n",
    )
    assert load_nvrtc().compile(unit, "sm_80").resources.registers <= 12
