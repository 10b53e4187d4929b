"""Spaces and recordings that need no GPU."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from support.plans.candidates import kernel

from wpk.search.searchers.replay import Recording, read_recording
from wpk.trial import Status, Trial

REPLAY = Path(__file__).parents[2] / "replay"

BEDS = (
    "attention_128.fp32-gemm_simt",
    "conv2.fp32-conv_simt",
    "mobilenet_1x1_56.fp32-conv_simt",
    "resnet_1x1_7.fp32-conv_simt",
    "resnet_3x3_7.fp16-conv_simt",
    "small_3x3_32.fp16-conv_simt",
)
"""Of the recordings of 2000 schedules and more, some of every kind of problem."""


def _record(
    axes: Sequence[int],
    seconds: Callable[[np.ndarray], float],
    legal: Callable[[np.ndarray], bool] = lambda point: True,
) -> Recording:
    """All legal combinations of axes 0, 1, ... ; infinite seconds are a failure."""
    names = tuple(f"axis_{place}" for place in range(len(axes)))
    trials = []
    for genes in np.ndindex(*axes):
        point = np.asarray(genes)
        if legal(point):
            cost = seconds(point)
            status = Status.OK if np.isfinite(cost) else Status.LAUNCH_FAILED
            times = (cost,) if np.isfinite(cost) else ()
            candidate = kernel("none", tuple(zip(names, genes, strict=True)))
            trials.append(Trial(candidate, status, times))
    features = {"rows": 64.0, "columns": 1000.0}
    return Recording("none", "made up", features, "none", names, tuple(trials))


@pytest.fixture(scope="session")
def record() -> Callable[..., Recording]:
    """Makes a recording: axes' sizes, seconds of a point, and which points are legal."""
    return _record


@pytest.fixture(scope="session")
def small() -> Recording:
    """60 schedules with holes; every seventh fails."""

    def seconds(point: np.ndarray) -> float:
        return np.inf if point.sum() % 7 == 3 else 1e-5 * (1 + float(point @ [3, 1, 2]))

    return _record((5, 4, 4), seconds, lambda point: bool((point[0] + point[1]) % 4 != 1))


@pytest.fixture(scope="session")
def bowl() -> Recording:
    """1536 schedules; each parameter away from (1, 5, 2, 3) costs its own share."""
    best = np.asarray([1, 5, 2, 3])
    return _record(
        (4, 8, 6, 8), lambda point: 1e-5 * float(np.prod(1 + 0.2 * np.abs(point - best)))
    )


@pytest.fixture(scope="session")
def beds() -> list[Recording]:
    """Some recordings of tests/replay."""
    return [read_recording(REPLAY / f"{name}.jsonl.xz") for name in BEDS]
