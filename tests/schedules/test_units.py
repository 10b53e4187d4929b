"""What holds of every template's unit, as reviewed in tests/golden."""

from pathlib import Path

import pytest

from wpk.build.nvrtc import load_nvrtc
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
