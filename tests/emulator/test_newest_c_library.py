"""The emulator beside C libraries that are newer than the one here."""

import shutil
import subprocess

import pytest

from wpk.emulator.build import PACKAGE_INCLUDE

C23 = "rsqrt sinpi cospi tanpi asinpi acospi atanpi exp10 exp2m1 exp10m1 log2p1 log10p1"
"""Functions of one argument that math.h has since C23 (glibc 2.41 and 2.42)."""


@pytest.mark.parametrize("first", [True, False])
def test_what_c23_adds_to_math_h_may_be_declared_beside_the_builtins(first: bool) -> None:
    compiler = shutil.which("g++")
    assert compiler is not None
    builtins = "#include <wpk/kernels/portable.cuh>"
    newer = "\n".join(f'extern "C" float {name}f(float) noexcept;' for name in C23.split())
    unit = f"{newer}\n{builtins}\n" if first else f"{builtins}\n{newer}\n"
    flags = ["-std=c++20", f"-I{PACKAGE_INCLUDE}", "-fsyntax-only", "-x", "c++", "-"]
    done = subprocess.run(
        [compiler, *flags], input=unit, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
