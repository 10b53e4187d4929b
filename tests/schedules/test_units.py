"""What holds of every template's unit, as reviewed in tests/golden."""

import re
from pathlib import Path

import pytest

from wpk.build.nvrtc import CompileError, load_nvrtc
from wpk.kernel_source import KernelSource

UNITS = sorted((Path(__file__).parents[1] / "golden/schedules").glob("*.cu"))


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.stem)
def test_a_unit_names_only_what_its_header_reads(path: Path) -> None:
    source = KernelSource(f"wpk_{path.stem}", path.read_text())
    log = load_nvrtc().compile(source, "sm_90a").log
    assert "never referenced" not in log


def test_the_compiler_tells_what_nobody_reads() -> None:
    head = "struct Problem {"
    text = UNITS[0].read_text().replace(head, f"{head}\n  static constexpr int spare = 1;")
    log = load_nvrtc().compile(KernelSource(f"wpk_{UNITS[0].stem}", text), "sm_90a").log
    assert 'spare" was declared but never referenced' in log


DYNAMIC = [path for path in UNITS if "int shared_bytes = " in path.read_text()]


@pytest.mark.parametrize("path", DYNAMIC, ids=lambda path: path.stem)
@pytest.mark.parametrize("wrong", [4096, -4096, 16])
def test_other_shared_memory_than_the_header_counts_does_not_compile(
    path: Path, wrong: int
) -> None:
    text = re.sub(
        r"(?<=int shared_bytes = )\d+",
        lambda counted: str(int(counted[0]) + wrong),
        path.read_text(),
    )
    with pytest.raises(CompileError, match="count the same shared memory"):
        load_nvrtc().compile(KernelSource(f"wpk_{path.stem}", text), "sm_90a")


def test_every_launch_with_shared_memory_is_compared() -> None:
    assert {path.stem for path in DYNAMIC} >= {
        "conv_grouped",
        "conv_halo",
        "conv_mma",
        "conv_patch",
        "conv_wgmma",
        "gemm_simt",
        "gemm_wgmma",
    }
