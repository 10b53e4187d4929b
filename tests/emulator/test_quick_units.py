"""Units of tests are compiled with headers that are read once: the compiler takes them, and they change nothing."""

import subprocess
from pathlib import Path

import pytest
from support.devices.quick_units import KernelHeaders, precompiled, quick_units
from support.faults.planter import inlined

from wpk.emulator import build
from wpk.emulator.build import compile_unit
from wpk.emulator.host_compiler import find_host_compiler
from wpk.errors import CompileError
from wpk.kernel_source import KernelSource

TEXT = "#include <wpk/kernels/portable.cuh>\nWPK_KERNEL(1) empty() {}\nWPK_EXPORT(empty)\n"
UNIT = KernelSource("empty", TEXT)


def arguments() -> list[str]:
    """As `compile_unit` gives them."""
    return [*build._KERNEL_FLAGS, f"-I{build.PACKAGE_INCLUDE}", "-x", "c++", "-"]


def read(headers: KernelHeaders, *flags: str) -> list[str]:
    """What the compiler says that it read for a unit, with flags of which the headers were not told."""
    compiler = find_host_compiler()
    given = headers.arguments(compiler, arguments(), TEXT)
    command = [*compiler.command, *flags, "-H", "-fsyntax-only", *given]
    done = subprocess.run(command, input=TEXT, capture_output=True, text=True, check=True)
    return [line for line in done.stderr.splitlines() if line[:1] in "!.x"]


def test_the_compiler_takes_what_is_precompiled_and_reads_no_header(tmp_path: Path) -> None:
    with quick_units(tmp_path) as headers:
        (line,) = read(headers)
        (header,) = headers.used
    assert line.split() == ["!", str(precompiled(header))]


def test_what_is_of_other_flags_would_be_seen_to_be_left(tmp_path: Path) -> None:
    with quick_units(tmp_path) as headers:
        mark, *_ = "".join(read(headers, "-fno-exceptions")).split()
    assert mark == "x"


def test_it_is_made_once_for_all_processes_and_flags_have_their_own(tmp_path: Path) -> None:
    made = []
    for process in ("first", "second"):
        with quick_units(tmp_path / "headers"):
            compile_unit(UNIT, cache=tmp_path / process)
            compile_unit(UNIT, checking=True, cache=tmp_path / process)
        files = (tmp_path / "headers").glob("*/*.gch")
        made.append({path: path.stat().st_mtime_ns for path in files})
    assert made[0] == made[1]
    assert len(made[0]) == 2


def test_a_text_that_has_its_headers_in_it_is_compiled_as_it_is(tmp_path: Path) -> None:
    text = inlined(TEXT)
    with quick_units(tmp_path / "headers") as headers:
        compile_unit(KernelSource("empty", text), cache=tmp_path)
        assert headers.used == set()
        given = arguments()
        assert headers.arguments(find_host_compiler(), given, text) == given
        with pytest.raises(CompileError, match="redefinition"):
            compile_unit(KernelSource("empty", f"{TEXT}{text}"), cache=tmp_path)


def test_users_flags_are_those_of_the_package(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    assert "-O2" not in build._KERNEL_FLAGS
    quick = compile_unit(UNIT, cache=tmp_path)
    request.getfixturevalue("as_users_compile")
    assert "-O2" in build._KERNEL_FLAGS
    users = compile_unit(UNIT, cache=tmp_path)
    assert users.name != quick.name
    linked = b"__cxa_finalize"  # by what the compiler adds to a library unless it is told not to
    assert [linked in each.read_bytes() for each in (users, quick)] == [True, False]
