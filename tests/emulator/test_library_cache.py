"""Built libraries are loaded as they were built, from folders that nobody else writes; else built again."""

import logging
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from wpk.emulator import library_cache
from wpk.emulator.build import compile_unit
from wpk.emulator.library_cache import fallback, kept, why_unsound
from wpk.errors import CompileError
from wpk.kernel_source import KernelSource

EMPTY = KernelSource(
    "empty",
    "#include <wpk/kernels/portable.cuh>\nWPK_KERNEL(1) empty() {}\nWPK_EXPORT(empty)\n",
)


@pytest.fixture(autouse=True)
def fixture_forget() -> None:
    library_cache._tell_once.cache_clear()


def counting(builds: list[Path]):
    def build(target: Path) -> None:
        builds.append(target)
        target.write_bytes(b"\x7fELF library")

    return build


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "text", "without its seal"])
def test_a_damaged_library_is_built_again(
    tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    builds: list[Path] = []
    library = kept(tmp_path, "a.so", counting(builds))
    data = library.read_bytes()
    library.write_bytes(
        {
            "cut": data[:-1],
            "flipped": b"\x7eELF" + data[4:],
            "empty": b"",
            "text": b"no library",
            "without its seal": b"\x7fELF library",
        }[damage]
    )
    with caplog.at_level(logging.WARNING):
        assert kept(tmp_path, "a.so", counting(builds)) == library
    assert "is damaged; it is built again" in caplog.text
    assert len(builds) == 2
    assert library.read_bytes() == data
    assert kept(tmp_path, "a.so", counting(builds)) == library
    assert len(builds) == 2


def test_a_truncated_kernel_no_longer_kills_who_loads_it(tmp_path: Path) -> None:
    library = compile_unit(EMPTY, cache=tmp_path)
    whole = library.read_bytes()
    library.write_bytes(whole[: len(whole) // 2])
    assert compile_unit(EMPTY, cache=tmp_path) == library
    program = f"import ctypes; ctypes.CDLL({str(library)!r}, mode=1)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert done.returncode in (0, 1)  # 1: a kernel by itself lacks the runtime's functions


def test_files_and_folder_are_the_users_alone(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    library = kept(folder, "a.so", counting([]))
    assert folder.stat().st_mode & 0o777 == 0o700
    assert library.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("mode", [0o720, 0o702, 0o777])
def test_what_others_may_write_is_not_loaded(tmp_path: Path, mode: int) -> None:
    builds: list[Path] = []
    library = kept(tmp_path, "a.so", counting(builds))
    library.chmod(mode)
    assert why_unsound(library) == "writable by others"
    assert kept(tmp_path, "a.so", counting(builds)) == library
    assert len(builds) == 2
    assert library.stat().st_mode & 0o022 == 0


def test_a_folder_that_others_may_write_becomes_the_users(tmp_path: Path) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o777)
    kept(folder, "a.so", counting([]))
    assert folder.stat().st_mode & 0o777 == 0o755


def test_another_users_folder_is_not_used_and_the_work_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    builds: list[Path] = []
    planted = kept(tmp_path, "a.so", counting(builds))
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    fallback.cache_clear()
    folder = fallback()
    os.chown(folder, 12345, -1) if os.getuid() == 0 else pytest.skip("needs root")
    with caplog.at_level(logging.WARNING):
        try:
            library = kept(tmp_path, "a.so", counting(builds))
        finally:
            fallback.cache_clear()
    assert library != planted
    assert library.parent == folder
    assert "it belongs to user 0, and what is in it would be executed" in caplog.text


def test_a_cache_that_cannot_be_written_costs_the_cache_and_not_the_work(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    builds: list[Path] = []
    with caplog.at_level(logging.WARNING):
        first = kept(tmp_path / "file" / "cache", "b.so", counting(builds))
        second = kept(tmp_path / "file" / "cache", "b.so", counting(builds))
    assert first == second
    assert first.parent == fallback()
    assert len(builds) == 1
    assert len(caplog.records) == 1
    assert "are not kept" in caplog.text
    assert "XDG_CACHE_HOME" in caplog.text


def test_a_full_disk_is_called_one(tmp_path: Path) -> None:
    """The linker says only that it failed; whoever reads that would install another compiler."""
    program = (
        "import resource, sys\n"
        "from pathlib import Path\n"
        "from wpk.emulator.build import compile_unit\n"
        "from wpk.errors import CompileError\n"
        "from wpk.kernel_source import KernelSource\n"
        f"source = KernelSource('empty', {EMPTY.text!r})\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (2048, 2048))\n"
        "try:\n"
        f"    compile_unit(source, cache=Path({str(tmp_path)!r}))\n"
        "except CompileError as error:\n"
        "    print(error.what, '|', error.fix)\n"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", program], capture_output=True, text=True, check=False
    )
    assert "can be kept neither in" in done.stdout, done.stderr
    assert "free space on these disks" in done.stdout
    assert "g++" not in done.stdout


def test_a_compile_error_is_none_of_the_disks(tmp_path: Path) -> None:
    with pytest.raises(CompileError, match="nonsense"):
        compile_unit(KernelSource("wrong", "int x = nonsense;"), cache=tmp_path)
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY
