import logging
from dataclasses import replace
from pathlib import Path

import pytest

from wpk.build import CompiledKernel, KernelCache, KernelResources, default_cache_folder
from wpk.errors import CompileError
from wpk.kernel_source import KernelSource

SOURCE = KernelSource("wpk_k", "unit text")
OPTIONS = ("--gpu-architecture=sm_90a",)


@pytest.fixture
def cache(tmp_path: Path) -> KernelCache:
    return KernelCache(tmp_path / "cubin")


@pytest.fixture
def kernel() -> CompiledKernel:
    resources = KernelResources(32, 256, 16, 8, 4)
    return CompiledKernel(
        SOURCE.digest, "wpk_k", "sm_90a", "nvrtc 13.5", b"code", resources, "a log: ü"
    )


def _key(cache: KernelCache) -> str:
    return cache.key(SOURCE, "13.5-100", OPTIONS)


def test_returns_what_was_stored(cache: KernelCache, kernel: CompiledKernel) -> None:
    assert cache.load(_key(cache)) is None
    cache.store(_key(cache), SOURCE, kernel)
    assert cache.load(_key(cache)) == kernel
    assert (cache.folder / _key(cache) / "unit.cu").read_text() == SOURCE.text


def test_nothing_but_whole_entries_is_left(cache: KernelCache, kernel: CompiledKernel) -> None:
    cache.store(_key(cache), SOURCE, kernel)
    assert [entry.name for entry in cache.folder.iterdir()] == [_key(cache)]


def test_the_key_changes_with_everything_that_matters(cache: KernelCache) -> None:
    keys = {
        _key(cache),
        cache.key(replace(SOURCE, text="other text"), "13.5-100", OPTIONS),
        cache.key(replace(SOURCE, entry="wpk_other"), "13.5-100", OPTIONS),
        cache.key(SOURCE, "13.5-101", OPTIONS),
        cache.key(SOURCE, "13.5-100", ("--gpu-architecture=sm_80",)),
    }
    assert len(keys) == 5


def test_losing_the_race_to_store_is_fine(cache: KernelCache, kernel: CompiledKernel) -> None:
    cache.store(_key(cache), SOURCE, kernel)
    cache.store(_key(cache), SOURCE, kernel)
    assert cache.load(_key(cache)) == kernel


@pytest.mark.parametrize(
    ("file", "damage"),
    [
        ("kernel.cubin", "missing"),
        ("kernel.cubin", "cut"),
        ("kernel.cubin", "changed"),
        ("kernel.json", "missing"),
        ("kernel.json", "cut"),
        ("kernel.json", "changed"),
        ("compiler.log", "missing"),
    ],
)
def test_a_damaged_entry_is_reported_removed_and_built_again(
    cache: KernelCache,
    kernel: CompiledKernel,
    caplog: pytest.LogCaptureFixture,
    file: str,
    damage: str,
) -> None:
    cache.store(_key(cache), SOURCE, kernel)
    path = cache.folder / _key(cache) / file
    if damage == "missing":
        path.unlink()
    else:
        data = path.read_bytes()
        path.write_bytes(data[:-1] if damage == "cut" else b"x" + data[1:])
    with caplog.at_level(logging.WARNING):
        assert cache.load(_key(cache)) is None
    assert "is damaged" in caplog.text
    cache.store(_key(cache), SOURCE, kernel)
    assert cache.load(_key(cache)) == kernel


def test_a_folder_that_cannot_be_written_is_an_error_with_a_fix(
    tmp_path: Path, kernel: CompiledKernel
) -> None:
    (tmp_path / "file").write_text("no folder")
    cache = KernelCache(tmp_path / "file" / "cubin")
    with pytest.raises(CompileError, match="cannot be written") as caught:
        cache.store(_key(cache), SOURCE, kernel)
    assert "XDG_CACHE_HOME" in caught.value.fix


def test_entries_are_the_users_alone(cache: KernelCache, kernel: CompiledKernel) -> None:
    cache.store(_key(cache), SOURCE, kernel)
    entry = cache.folder / _key(cache)
    assert cache.folder.stat().st_mode & 0o777 == 0o700
    assert entry.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in entry.iterdir()} == {0o600}


@pytest.mark.parametrize("file", ["", "kernel.cubin", "kernel.json"])
def test_what_others_may_write_is_not_taken(
    cache: KernelCache, kernel: CompiledKernel, caplog: pytest.LogCaptureFixture, file: str
) -> None:
    cache.store(_key(cache), SOURCE, kernel)
    (cache.folder / _key(cache) / file).chmod(0o777)
    assert cache.load(_key(cache)) is None
    assert "could have been written by others" in caplog.text
    cache.store(_key(cache), SOURCE, kernel)
    assert cache.load(_key(cache)) == kernel


def test_lies_in_the_users_cache_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert KernelCache().folder == tmp_path / "wpk" / "cubin"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert default_cache_folder() == Path.home() / ".cache" / "wpk"
