"""Trials of several stores travel in pieces of a size."""

from __future__ import annotations

from pathlib import Path

import pytest
from pack_trials import pack, unpack
from rows.trials import FILE, all_trials
from support.plans.candidates import kernel
from support.problems.warpgroup_layers import matmul

from wpk.search.store import TuningStore
from wpk.search.store.key import Setup, StoreKey
from wpk.trial import Regime, Status, Trial

SETUP = Setup("h100", "sm_90a", "nvrtc 13.0.88", "580.65")
PLACES = (FILE, f"zoo/bert.fp16.b1/{FILE}")


@pytest.fixture(name="store")
def fixture_store(tmp_path: Path) -> Path:
    """Two stores in a folder, with three trials each, beside what is no store."""
    key = StoreKey(matmul(64, 32, 16), kernel("tiled", version="1").maker, SETUP)
    for place in PLACES:
        with TuningStore(tmp_path / "store" / place) as opened:
            run = opened.begin_run(seed=1).id
            for block in (8, 16, 32):
                trial = Trial(kernel("tiled", (("block_m", block),)), Status.OK, (block * 1e-6,))
                opened.record(run, key, trial, Regime.COLD)
    (tmp_path / "store" / "kernel.cubin").write_bytes(bytes(1000))
    return tmp_path / "store"


def test_all_trials_come_back_from_small_pieces(store: Path, tmp_path: Path) -> None:
    pieces = pack(store, tmp_path / "pieces", most_bytes=200)
    assert len(pieces) > 2
    assert max(each.stat().st_size for each in pieces) == 200
    assert unpack(tmp_path / "pieces", tmp_path / "again") == 6
    for place in PLACES:
        before, after = (all_trials(root / place) for root in (store, tmp_path / "again"))
        assert len(before) == 3
        assert {each.uid for each in after} == {each.uid for each in before}
    assert unpack(tmp_path / "pieces", tmp_path / "again") == 0
    assert not list((tmp_path / "again").rglob("*.cubin"))


def test_a_missing_piece_or_an_old_one_is_told(store: Path, tmp_path: Path) -> None:
    pieces = pack(store, tmp_path / "pieces", most_bytes=200)
    with pytest.raises(SystemExit, match="pieces lie in"):
        pack(store, tmp_path / "pieces")
    pieces[1].unlink()
    with pytest.raises(SystemExit, match="damaged, or one is missing"):
        unpack(tmp_path / "pieces", tmp_path / "again")
    with pytest.raises(SystemExit, match="no trials"):
        unpack(store, tmp_path / "again")
    with pytest.raises(SystemExit, match="no trials"):
        pack(tmp_path / "pieces", tmp_path / "more")
