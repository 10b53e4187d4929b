"""Where kernels and trials are kept, and what happens where they cannot be."""

from pathlib import Path

import pytest

from wpk.search.loop.cache_folder import CacheFolder
from wpk.search.store.store import TuningStore


def test_trials_lie_in_the_folder_that_was_named(tmp_path: Path) -> None:
    places = CacheFolder(tmp_path / "cache")
    assert places.writable_store == places.store == tmp_path / "cache" / "trials.sqlite"
    assert (tmp_path / "cache").stat().st_mode & 0o777 == 0o700


def test_a_folder_that_cannot_be_written_costs_the_store_and_not_the_work(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    places = CacheFolder(tmp_path / "file" / "cache")
    store = places.writable_store
    with TuningStore(store) as opened:
        assert not opened.runs()
    assert places.writable_store == store
    (record,) = caplog.records
    assert "trials are not kept" in record.getMessage()
    assert "--cache FOLDER" in record.getMessage()
