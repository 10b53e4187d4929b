import re
from collections import Counter
from pathlib import Path

import pytest
from support.machine_code.disassembly import listing

from wpk.build import count_tensor_core_instructions
from wpk.build.nvrtc import Nvrtc
from wpk.kernel_source import KernelSource

PRODUCTS = """
#define MMA(shape, type)                                                                     \\
    asm volatile("mma.sync.aligned." shape ".row.col.f32." type "." type ".f32 "             \\
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"                     \\
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                            \\
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a[4]), "r"(a[5]))
extern "C" __global__ void products(const unsigned* a, float* out) {
    float d[4] = {out[0], out[1], out[2], out[3]};
    STATEMENTS
    for (int i = 0; i < 4; ++i) out[i] = d[i];
}
"""
WGMMA = """
#define WGMMA(shape, type, transposes)                                                       \\
    asm volatile("wgmma.mma_async.sync.aligned." shape ".f32." type "." type                 \\
                 " {%0,%1,%2,%3}, %4, %5, 1, 1, 1" transposes ";"                            \\
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(a[0]), "l"(a[1]))
extern "C" __global__ void products(const unsigned long long* a, float* out) {
    float d[4] = {out[0], out[1], out[2], out[3]};
    asm volatile("wgmma.fence.sync.aligned;");
    STATEMENTS
    asm volatile("wgmma.commit_group.sync.aligned;");
    asm volatile("wgmma.wait_group.sync.aligned 0;");
    for (int i = 0; i < 4; ++i) out[i] = d[i];
}
"""
F16 = 'MMA("m16n8k16", "f16");'
BF16 = 'MMA("m16n8k16", "bf16");'
TF32 = 'MMA("m16n8k8", "tf32");'


def _count(nvrtc: Nvrtc, frame: str, statements: str, arch: str) -> Counter[str]:
    source = KernelSource("products", frame.replace("STATEMENTS", statements))
    return count_tensor_core_instructions(nvrtc.compile(source, arch).cubin)["products"]


@pytest.mark.parametrize("arch", ["sm_80", "sm_89", "sm_90a", "sm_100a", "sm_120a"])
def test_tells_the_types_of_mma_apart_on_every_architecture(nvrtc: Nvrtc, arch: str) -> None:
    counts = _count(nvrtc, PRODUCTS, F16 + BF16 * 2 + TF32 * 3, arch)
    assert counts == {"hmma.f16": 1, "hmma.bf16": 2, "hmma.tf32": 3}


def test_tells_the_types_of_wgmma_apart(nvrtc: Nvrtc) -> None:
    statements = (
        'WGMMA("m64n8k16", "f16", ", 0, 0");'
        + 'WGMMA("m64n8k16", "bf16", ", 0, 0");' * 2
        + 'WGMMA("m64n8k8", "tf32", "");' * 3
    )
    counts = _count(nvrtc, WGMMA, statements, "sm_90a")
    assert counts == {"hgmma.f16": 1, "hgmma.bf16": 2, "hgmma.tf32": 3}


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_100a"])
def test_counts_nothing_in_a_kernel_of_the_ordinary_cores(
    nvrtc: Nvrtc, spilling: KernelSource, arch: str
) -> None:
    # Its code is long and holds packed half constants (HFMA2.MMA), which are no products.
    counts = count_tensor_core_instructions(nvrtc.compile(spilling, arch).cubin)
    assert counts == {"spilling": Counter()}


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_100a"])
def test_agrees_with_the_disassembler(nvrtc: Nvrtc, tmp_path: Path, arch: str) -> None:
    text = PRODUCTS.replace("STATEMENTS", F16 * 3 + BF16 + TF32 * 2)
    cubin = nvrtc.compile(KernelSource("products", text), arch).cubin
    text = listing(cubin, tmp_path)
    listed = Counter(re.findall(r"\b[HIDQ]G?MMA\.[A-Z0-9.]+", text))
    assert listed == {"HMMA.16816.F32": 3, "HMMA.16816.F32.BF16": 1, "HMMA.1688.F32.TF32": 2}
    counts = count_tensor_core_instructions(cubin)["products"]
    assert counts == {"hmma.f16": 3, "hmma.bf16": 1, "hmma.tf32": 2}
