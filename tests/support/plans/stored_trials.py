"""Trials in a tuning store without a GPU: their times are multiples of a problem's bound.

    python tests/support/plans/stored_trials.py STORE COUNT SECONDS_BETWEEN

fills a store slowly, as a tuning does.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from itertools import count
from pathlib import Path

from wpk.candidate import Candidate, Maker
from wpk.dtypes import DType, Precision
from wpk.extent import Extent
from wpk.performance.bound import bound
from wpk.problems import Epilogue, Matmul, Tensor
from wpk.search.store.key import Setup, StoreKey
from wpk.search.store.records import RunState, Stage
from wpk.search.store.store import TuningStore
from wpk.targets.registry import find_target
from wpk.trial import Regime, Status, Trial

_SIZE = 64
_MATRIX = Tensor(DType.FP32, (0, 0, _SIZE, 1))

PROBLEM = Matmul(
    precision=Precision.FP32,
    batch=(Extent(1), 1),
    m=Extent(_SIZE),
    n=_SIZE,
    k=_SIZE,
    a=_MATRIX,
    b=_MATRIX,
    b_constant=True,
    y=_MATRIX,
    epilogue=Epilogue(),
)
TEMPLATE = Maker("gemm_simt", "1")
KEY = StoreKey(PROBLEM, TEMPLATE, Setup("h200", "sm_90a", "nvrtc 13.0.88", "580.65"))


def write_trials(
    path: Path, multiples: Sequence[float], stage: Stage = Stage.SEARCH, pause: float = 0.0
) -> None:
    """One run with a trial for each multiple of the bound, each of a schedule of its own."""
    limit = bound(PROBLEM, find_target("h200")).seconds
    with TuningStore(path) as store:
        run = store.begin_run(seed=0)
        for number, multiple in zip(count(), multiples, strict=False):
            trial = Trial(
                Candidate(TEMPLATE, (("block_m", number),)), Status.OK, (multiple * limit,)
            )
            store.record(run.id, KEY, trial, Regime.WARM, stage)
            time.sleep(pause)
        store.end_run(run.id, RunState.FINISHED)


if __name__ == "__main__":
    write_trials(Path(sys.argv[1]), [2.0] * int(sys.argv[2]), pause=float(sys.argv[3]))
