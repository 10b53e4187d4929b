"""Compare what two NVRTCs make of the same kernels, by the products in their PTX.

    python benchmarks/compare_compilers.py path/to/libnvrtc.so.13 [UNIT.cu ...]

A compiler that leaves out or repeats a product is wrong wherever its kernel runs, and no check on the machine of
another compiler sees it. Each unit, those of tests/golden/schedules where none is named, is compiled by the NVRTC
of this installation and by the one that is given; multiply-adds, products of bytes, of tensor cores and of warpgroups
are counted by type, addresses left out. Counts may also differ where one compiler unrolls a loop that the other one keeps: so each difference
is to be looked at, or executed. Exits with 1 where there are any.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

from wpk.build.nvrtc import load_nvrtc
from wpk.errors import WpkError
from wpk.kernel_source import KernelSource

GOLDEN = Path(__file__).parents[1] / "tests" / "golden" / "schedules"

_PRODUCT = re.compile(rb"^\s*(?:@!?%p\d+\s+)?((?:fma|mma|wgmma|dp4a)[\w.:]*)", re.MULTILINE)
_TYPE = re.compile(rb"^(?:f|bf|tf|s|u|b|e)(?:64|32|16|8|4m3|5m2)\w*$")
_ENTRY = re.compile(r"WPK_EXPORT\((\w+)\)")


class Compiler(Protocol):
    """What is compared: `wpk.build.nvrtc.Nvrtc`, or a test's double."""

    identity: str

    def ptx(self, source: KernelSource, arch: str) -> bytes:
        """Compile one kernel to PTX."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a line a unit whose products differ, and how many do; 1 where there are any."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("library", type=Path, help="another libnvrtc")
    parser.add_argument(
        "units", nargs="*", type=Path, metavar="UNIT.cu", help="instead of golden ones"
    )
    parser.add_argument("--arch", default="sm_90a", help="what is compiled for (sm_90a)")
    given = parser.parse_args(arguments)
    units = given.units or sorted(GOLDEN.glob("*.cu"))
    try:
        here, other = load_nvrtc(), load_nvrtc(given.library.resolve())
        different = compare(units, here, other, given.arch)
    except (OSError, WpkError) as error:
        print(error, file=sys.stderr)
        return 2
    return int(different > 0)


def compare(units: Sequence[Path], here: Compiler, other: Compiler, arch: str) -> int:
    """Print what differs; return in how many units."""
    print(f"nvrtc {here.identity} here, {other.identity} there; {arch}")
    different = 0
    for unit in units:
        source = _source(unit)
        lines = list(
            differences(products(here.ptx(source, arch)), products(other.ptx(source, arch)))
        )
        different += bool(lines)
        for line in lines:
            print(f"{unit.name}: {line}")
    print(f"{len(units) - different} of {len(units)} units have the same products")
    return different


def products(ptx: bytes) -> Counter[str]:
    """Count the instructions of a PTX text that multiply, by kind and type: ``fma f32``, ``wgmma f32 f16 f16``."""
    return Counter(map(_named, _PRODUCT.findall(ptx)))


def differences(here: Counter[str], other: Counter[str]) -> Iterator[str]:
    """What two counts differ in, a line a kind of product."""
    for kind in sorted(here | other):
        if here[kind] != other[kind]:
            yield f"{kind}: {here[kind]} here, {other[kind]} there"


def _named(instruction: bytes) -> str:
    kind, *modifiers = instruction.split(b".")
    types = [each for each in modifiers if _TYPE.match(each)]
    return b" ".join((kind, *types)).decode()


def _source(unit: Path) -> KernelSource:
    text = unit.read_text()
    entry = _ENTRY.search(text)
    if entry is None:
        raise WpkError(
            f"{unit} is no unit of wpk: it exports no kernel",
            fix="name files as tests/golden/schedules has them, or as `wpk inspect --source` prints them",
        )
    return KernelSource(entry[1], text)


if __name__ == "__main__":
    sys.exit(main())
