"""What ``plugins/core`` declares of CUDA's driver is what ``cuda.h`` declares, where one is installed."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOOKED_UP = re.compile(r'\(library, "(\w+)", cuda\.(\w+)\);')
TYPES_AT_LEAST = 40


def header_folder() -> Path:
    """The folder of ``cuda.h``."""
    found = sorted(Path("/usr/local").glob("cuda*/include/cuda.h"))
    if not found:
        pytest.skip("needs cuda.h, of a CUDA toolkit in /usr/local")
    return found[-1].parent


def looked_up() -> list[tuple[str, str]]:
    """Symbols of the driver and the fields of ``Driver`` that they go to."""
    source = (ROOT / "plugins" / "core" / "cuda_driver.cpp").read_text(encoding="utf-8")
    return LOOKED_UP.findall(source)


def compiled(folder: Path, pairs: list[tuple[str, str]]) -> subprocess.CompletedProcess[str]:
    """What a compiler says of comparisons of fields with symbols."""
    compiler = shutil.which("g++") or pytest.skip("needs g++")
    lines = ['#include "plugins/tests/compare_with_cuda_h.hpp"']
    lines += [f"WPK_SAME({field}, {symbol});" for symbol, field in pairs]
    unit = folder / "unit.cpp"
    unit.write_text("\n".join(lines) + "\n", encoding="utf-8")
    words = [compiler, "-std=c++17", "-fsyntax-only", f"-I{ROOT}", "-isystem", header_folder()]
    return subprocess.run([*words, unit], capture_output=True, text=True, check=False)


def test_every_field_of_the_driver_is_looked_up() -> None:
    header = (ROOT / "plugins" / "core" / "cuda_functions.hpp").read_text(encoding="utf-8")
    fields = re.findall(r"CUresult \(\*(\w+)\)", header)
    assert [field for _, field in looked_up()] == fields
    assert len(fields) > TYPES_AT_LEAST


def test_declarations_are_those_of_cuda_h(tmp_path: Path) -> None:
    done = compiled(tmp_path, looked_up())
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "pair",
    [
        ("cuMemAlloc", "cuMemAlloc"),  # its first version: an address of 32 bits
        ("cuStreamGetCaptureInfo_v3", "cuStreamGetCaptureInfo"),
        ("cuTensorMapEncodeIm2col", "cuTensorMapEncodeTiled"),
    ],
)
def test_other_declarations_are_noticed(tmp_path: Path, pair: tuple[str, str]) -> None:
    done = compiled(tmp_path, [pair])
    assert f"{pair[1]} differs" in done.stderr
