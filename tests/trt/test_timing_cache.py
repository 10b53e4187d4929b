"""The file of a timing cache, against an imitation of TensorRT's configuration written here.

TensorRT for RTX, the builder that the other tests use, times nothing; the names that are called are
compared with the real bindings in `test_real_bindings`.
"""

from pathlib import Path
from typing import Any

import pytest

from wpk.options import TensorRTOptions
from wpk.tensorrt import TensorRTError
from wpk.tensorrt.configuration import keep_timing_cache, open_timing_cache


class Cache:
    """Bytes behind a header; anything else is taken as empty, as TensorRT does."""

    def __init__(self, data: bytes) -> None:
        self.data = data if data.startswith(b"head") else b"head"

    def serialize(self) -> bytes:
        return self.data


class Config:
    """An IBuilderConfig, as far as timing caches go."""

    def __init__(self, same_gpu: bool = True) -> None:
        self.same_gpu = same_gpu
        self.cache: Any = None

    def create_timing_cache(self, data: bytes) -> Cache:
        return Cache(data)

    def set_timing_cache(self, cache: Cache, ignore_mismatch: bool) -> bool:
        self.cache = cache
        return self.same_gpu or ignore_mismatch

    def get_timing_cache(self) -> Cache:
        assert isinstance(self.cache, Cache)
        return self.cache


def test_it_is_written_and_read_again(tmp_path: Path) -> None:
    config, options = Config(), TensorRTOptions(timing_cache=tmp_path / "x.cache")
    open_timing_cache(config, options)
    config.cache.data += b" timed"
    keep_timing_cache(config, options)
    again = Config()
    open_timing_cache(again, options)
    assert again.cache.data == b"head timed"


def test_an_empty_cache_that_was_written_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "x.cache"
    path.write_bytes(b"head")
    open_timing_cache(Config(), TensorRTOptions(timing_cache=path))


def test_a_file_that_is_none_is_refused_before_it_is_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "thesis.txt"
    path.write_bytes(b"three years of work")
    with pytest.raises(TensorRTError, match="holds no timing cache"):
        open_timing_cache(Config(), TensorRTOptions(timing_cache=path))
    assert path.read_bytes() == b"three years of work"


def test_one_of_another_gpu_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.cache"
    path.write_bytes(b"head timed")
    with pytest.raises(TensorRTError, match="this GPU"):
        open_timing_cache(Config(same_gpu=False), TensorRTOptions(timing_cache=path))


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TensorRTError, match="cannot be read"):
        open_timing_cache(Config(), TensorRTOptions(timing_cache=tmp_path))


def test_without_the_option_nothing_is_opened_or_written() -> None:
    config = Config()
    open_timing_cache(config, TensorRTOptions())
    keep_timing_cache(config, TensorRTOptions())
    assert config.cache is None
