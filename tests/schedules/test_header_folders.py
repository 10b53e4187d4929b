"""Folders of device headers stand above each other, as docs/adding_a_template.md lists them; headers stand alone."""

import re
from pathlib import Path

import pytest

from wpk.build import load_nvrtc
from wpk.errors import CompileError
from wpk.kernel_source import KernelSource

ROOT = Path(__file__).parents[2]
KERNELS = ROOT / "wpk" / "kernels"
PAGE = (ROOT / "docs" / "adding_a_template.md").read_text(encoding="utf-8")
TABLE = PAGE.split("| folder of `wpk/kernels` | holds |")[1].split("\n\n")[0]
FOLDERS = [
    name for row in re.findall(r"^\| (`.*?) \|", TABLE, re.M) for name in re.findall(r"\w+", row)
]
"""From the ground up; the language that all headers start with, portable.cuh, lies below them."""
HEADERS = sorted(path.relative_to(ROOT).as_posix() for path in KERNELS.rglob("*.cuh"))
INCLUDE = re.compile(r"#\s*include\s+<wpk/kernels/(?:(\w+)/)?\w+\.cuh>")


def _compile(headers: list[str]) -> None:
    includes = "".join(f"#include <{name}>\n" for name in headers)
    unit = f"{includes}WPK_KERNEL(32) wpk_none(int* x) {{}}\nWPK_EXPORT(wpk_none)\n"
    load_nvrtc().compile(KernelSource("wpk_none", unit), "sm_90a")


def test_the_page_lists_every_folder() -> None:
    assert [path.name for path in KERNELS.glob("*.cuh")] == ["portable.cuh"]
    assert {path.parent.name for path in KERNELS.glob("*/*.cuh")} == set(FOLDERS)


def test_a_folder_includes_only_those_listed_before_it() -> None:
    for number, folder in enumerate(FOLDERS):
        for path in (KERNELS / folder).glob("*.cuh"):
            included = set(INCLUDE.findall(path.read_text(encoding="utf-8")))
            assert included <= {"", *FOLDERS[: number + 1]}, path


def test_every_header_compiles_alone() -> None:
    for name in HEADERS:
        _compile([name])


@pytest.mark.parametrize("headers", [HEADERS, HEADERS[::-1]], ids=["forwards", "backwards"])
def test_headers_compile_in_any_order(headers: list[str]) -> None:
    _compile(headers)


def test_a_header_that_is_missing_is_an_error() -> None:
    with pytest.raises(CompileError, match=r"wpk/kernels/none\.cuh"):
        _compile(["wpk/kernels/none.cuh"])
