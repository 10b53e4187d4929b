"""Building for the CPU: once, atomically, and with words when it cannot be."""

import stat
from pathlib import Path

import pytest

from wpk.emulator import build
from wpk.emulator.build import compile_unit, default_cache, runtime_library
from wpk.emulator.host_compiler import find_host_compiler
from wpk.errors import CompileError
from wpk.kernel_source import KernelSource

EMPTY = KernelSource(
    "empty",
    "#include <wpk/kernels/portable.cuh>\nWPK_KERNEL(1) empty() {}\nWPK_EXPORT(empty)\n",
)


def test_builds_once(tmp_path: Path):
    first = compile_unit(EMPTY, cache=tmp_path)
    written = first.stat().st_mtime_ns
    assert compile_unit(EMPTY, cache=tmp_path) == first
    assert first.stat().st_mtime_ns == written
    assert sorted(tmp_path.iterdir()) == [first]


def test_everything_that_decides_the_bytes_is_in_the_name(tmp_path: Path):
    other = KernelSource("empty", EMPTY.text + "// another comment\n")
    built = {
        compile_unit(EMPTY, cache=tmp_path),
        compile_unit(EMPTY, checking=True, cache=tmp_path),
        compile_unit(other, cache=tmp_path),
    }
    assert len(built) == 3


def test_a_failed_build_leaves_nothing(tmp_path: Path):
    with pytest.raises(CompileError, match=r"failed to compile kernel wrong: .*nonsense"):
        compile_unit(KernelSource("wrong", "int x = nonsense;"), cache=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_cache_lies_where_the_user_says(monkeypatch, tmp_path: Path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_cache() == tmp_path / "wpk" / "emulator"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert default_cache() == Path.home() / ".cache" / "wpk" / "emulator"


def test_no_compiler_is_an_error_that_names_the_package(monkeypatch, tmp_path: Path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CXX", "no-such-compiler --flag")
    with pytest.raises(CompileError, match="tried no-such-compiler") as caught:
        find_host_compiler()
    assert "apt-get install g++" in caught.value.fix


def test_a_compiler_that_does_not_work_is_an_error(monkeypatch, tmp_path: Path):
    broken = tmp_path / "broken++"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(broken.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("CXX", str(broken))
    with pytest.raises(CompileError, match="does not work"):
        find_host_compiler()


def test_another_cpu_than_x86_is_refused_in_words(monkeypatch):
    monkeypatch.setenv("CXX", "c++ --aarch64")  # a name of its own: findings are remembered
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    with pytest.raises(CompileError, match="x86-64 only, this machine is aarch64"):
        find_host_compiler()


def test_cxx_decides_the_compiler(monkeypatch):
    monkeypatch.setenv("CXX", "g++ -DEXTRA")
    assert find_host_compiler().command == ("g++", "-DEXTRA")


def test_the_runtime_library_is_built_once():
    assert runtime_library() == runtime_library()
    assert runtime_library().parent == default_cache()
    assert build.PACKAGE_INCLUDE.joinpath("wpk", "kernels", "portable.cuh").exists()
