"""Products that a compiler leaves out are seen in its PTX."""

from __future__ import annotations

from pathlib import Path

import pytest
from compare_compilers import GOLDEN, compare, main, products

from wpk.build import load_nvrtc
from wpk.kernel_source import KernelSource

PTX = b"""
	fma.rn.f32 	%f1, %f2, %f3, %f4;
	@%p1 fma.rn.f32 	%f1, %f2, %f3, %f4;
	fma.rn.f16x2 	%r1, %r2, %r3, %r4;
	mad.lo.s32 	%r1, %r2, %r3, %r4;
	// fma.rn.f32 of a comment
	mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1}, {%r1}, {%r2}, {%f2};
	wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {%f1}, %rd1, %rd2, 1, 1, 1, 0, 0;
	dp4a.s32.u32 	%r1, %r2, %r3, %r4;
"""


class Forgetful:
    """NVRTC, but for products of which it forgets every second one."""

    identity = "forgetful"

    def ptx(self, source: KernelSource, arch: str) -> bytes:
        lines = load_nvrtc().ptx(source, arch).splitlines()
        multiplying = [at for at, line in enumerate(lines) if b"fma.rn" in line]
        assert multiplying, "the unit multiplies"
        return b"\n".join(line for at, line in enumerate(lines) if at not in multiplying[::2])


def test_products_are_counted_by_type() -> None:
    assert products(PTX) == {
        "fma f32": 2,
        "fma f16x2": 1,
        "mma f32 f16 f16 f32": 1,
        "wgmma f32 bf16 bf16": 1,
        "dp4a s32 u32": 1,
    }


def test_a_forgotten_product_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    unit = GOLDEN / "depthwise.cu"
    assert compare([unit], load_nvrtc(), Forgetful(), "sm_90a") == 1
    assert "depthwise.cu: fma f32: " in capsys.readouterr().out
    assert compare([unit], load_nvrtc(), load_nvrtc(), "sm_90a") == 0


def test_what_cannot_be_compared_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(tmp_path / "libnvrtc.so")]) == 2
    assert "NVRTC cannot be loaded" in capsys.readouterr().err
    unit = tmp_path / "empty.cu"
    unit.write_text("")
    assert main([str(load_nvrtc().path), str(unit)]) == 2
    assert "it exports no kernel" in capsys.readouterr().err
