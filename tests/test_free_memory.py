"""How much memory a process may still take, by what the machine and its container say."""

from pathlib import Path

import pytest

from wpk import free_memory


def test_what_is_free_is_what_the_machine_and_the_container_leave(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(free_memory, "_MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(free_memory, "_CGROUP", tmp_path)
    assert free_memory.free_bytes() is None
    (tmp_path / "meminfo").write_text("MemTotal:   4096 kB\nMemAvailable:   3000 kB\n")
    assert free_memory.free_bytes() == 3000 * 1024
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory.current").write_text("900000\n")
    (tmp_path / "memory.stat").write_text("anon 1\nactive_file 200000\ninactive_file 100000\n")
    assert free_memory.free_bytes() == 3000 * 1024
    (tmp_path / "memory.max").write_text("1000000\n")
    assert free_memory.free_bytes() == 1000000 - (900000 - 300000)
    (tmp_path / "memory.max").write_text("1000\n")
    assert free_memory.free_bytes() == 1


def test_this_machine_says_what_is_free() -> None:
    free = free_memory.free_bytes()
    assert free is not None
    assert free > 1 << 20
