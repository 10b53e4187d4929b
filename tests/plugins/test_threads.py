"""Eight threads with an engine each, and one that they share, through the C API on the double of CUDA's driver."""

import subprocess
from pathlib import Path

import numpy as np
import pytest
from support.plans.executed_plans import BRANCHES, branches_by_numpy
from support.plugins import DEBUG, TOGETHER, built, on_the_double

THREADS = 8
ROWS = 2
"""The size that the plan is tuned for."""


@pytest.fixture(scope="module")
def for_threads(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """A build with ThreadSanitizer."""
    base = tmp_path_factory.getbasetemp()
    shared = base if worker_id == "master" else base.parent
    options = (*DEBUG, *TOGETHER, "-DWPK_SANITIZE=thread")
    targets = ("run_in_threads", "recording_cuda")
    return built(shared / "plugins_for_threads", *options, targets=targets)


@pytest.fixture(params=["sanitized", pytest.param("for_threads", marks=pytest.mark.slow)])
def build(request: pytest.FixtureRequest) -> Path:
    """With AddressSanitizer, and with ThreadSanitizer."""
    folder: Path = request.getfixturevalue(request.param)
    return folder


def started(
    build: Path, folder: Path, inputs: np.ndarray, threads: int
) -> subprocess.CompletedProcess[str]:
    inputs.tofile(folder / "x")
    words = [BRANCHES.write(folder / "m.plan"), folder / "x", folder / "y", str(threads)]
    return subprocess.run(
        [build / "plugins" / "tests" / "run_in_threads", *words],
        env=on_the_double(build, folder / "calls"),
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )


def test_each_thread_gets_its_own_results(build: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(THREADS)
    x = rng.integers(-9, 9, (THREADS, ROWS, 4)).astype(np.float32)
    done = started(build, tmp_path, x, THREADS)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    y = np.fromfile(tmp_path / "y", np.float32).reshape(THREADS + 1, ROWS, 4)
    expected = [branches_by_numpy(each) for each in (*x, x[0])]
    np.testing.assert_array_equal(y, expected)
    assert len({each.tobytes() for each in expected}) == THREADS
    calls = (tmp_path / "calls").read_text(encoding="utf-8").splitlines()
    assert calls[-1] == "left 0"
    assert not [line for line in calls if line.startswith("wrong")]


def test_a_failure_in_a_thread_is_told(sanitized: Path, tmp_path: Path) -> None:
    done = started(sanitized, tmp_path, np.zeros((3, ROWS, 4), np.float32), 4)
    assert done.returncode == 1
    assert "another size" in done.stderr
