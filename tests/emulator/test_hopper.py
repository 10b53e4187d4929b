"""What sm_90 has, on the emulator: clusters, tensor copies, barriers that count bytes, products of warpgroups."""

import numpy as np
import pytest
from support.faults.planter import change
from support.hopper.catalogue import examples
from support.hopper.example import Example, run
from support.hopper.products import gemms

from wpk.build import load_nvrtc
from wpk.emulator import CHECKING, FAST, Emulator, Mode
from wpk.execution import KernelImage
from wpk.kernel_source import KernelSource

EXAMPLES = examples()

both_modes = pytest.mark.parametrize("mode", [FAST, CHECKING], ids=["fast", "checking"])


@both_modes
@pytest.mark.parametrize("example", EXAMPLES, ids=str)
def test_gives_what_the_documents_say(example: Example, mode: Mode) -> None:
    source = example.source()
    result = run(example, Emulator(mode), KernelImage(source.digest, source, b""))
    np.testing.assert_array_equal(result, example.expected)


@pytest.mark.parametrize("file", sorted({example.file for example in EXAMPLES}))
def test_compiles_for_hopper(file: str) -> None:
    """Without spills, and with products that run beside the threads: ptxas says where it serializes them."""
    for source in {e.source().text: e.source() for e in EXAMPLES if e.file == file}.values():
        compiled = load_nvrtc().compile(source, "sm_90a")
        assert compiled.resources.spill_store_bytes == 0
        assert "serialized" not in compiled.log


def test_a_wait_without_its_accumulators_serializes_products() -> None:
    """What waitWgmma<N>(d) is there for, and that the test above can fail."""
    example = next(gemms())
    source = example.source(change("products_done", "(acc)", "()"))
    assert "serialized" in load_nvrtc().compile(source, "sm_90a").log


_WIDTHS = """#include <wpk/kernels/wgmma/wgmma.cuh>
template <int Columns> WPK_DEVICE float sum(wpk::uint64 a, wpk::uint64 b, const wpk::uint32 (&registers)[4])
{
    float d[Columns / 2] = {}, total = 0.0f;
    wpk::fenceWgmma();
    wpk::wgmma<wpk::TYPE>(d, a, b, 0);
    wpk::wgmma<wpk::TYPE>(d, registers, b, 1);
    wpk::commitWgmma();
    wpk::waitWgmma<0>(d);
    for (float value : d)
        total += value;
    if constexpr (Columns > 8)
        total += sum<Columns - 8>(a, b, registers);
    return total;
}
WPK_KERNEL(128) widths(const wpk::uint32* x, float* y)
{
    const wpk::uint32 registers[4] = {x[0], x[1], x[2], x[3]};
    y[threadIdx.x] = sum<256>(x[4], x[5], registers);
}
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "element", ["Half", pytest.param("Bfloat16", marks=pytest.mark.exhaustive), "Tf32"]
)
def test_every_width_of_wgmma_compiles(element: str) -> None:
    unit = KernelSource("widths", _WIDTHS.replace("TYPE", element))
    assert load_nvrtc().compile(unit, "sm_90a").resources.registers > 0
