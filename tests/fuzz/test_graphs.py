"""A sample of random models: right or refused in words, with and without checks."""

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from fuzzing import corpus
from fuzzing.builder import Rejected
from fuzzing.graphs import draw
from fuzzing.running import GOOD, Outcome, run_case
from fuzzing.warm import Warm

SAMPLE = range(100, 108)


@pytest.fixture(scope="module")
def warm() -> Iterator[Warm]:
    """The pipeline; one schedule of each problem is compiled."""
    with Warm(finalists=1) as pipeline:
        yield pipeline


@pytest.mark.parametrize("seed", SAMPLE)
def test_a_drawn_model_is_right_or_refused(warm: Warm, seed: int) -> None:
    try:
        case = draw(Random(seed), f"seed {seed}")
    except Rejected as why:
        pytest.skip(str(why))
    result = run_case(case, warm, check="both")
    assert result.outcome in GOOD, result
    assert result.unchecked in (*GOOD, None), result


@pytest.mark.parametrize("path", corpus.files(), ids=lambda path: path.stem)
def test_what_failed_once_is_right_or_refused(warm: Warm, path: Path) -> None:
    case = corpus.read_case(path)
    result = run_case(case, warm, check="both")
    assert result.outcome in (Outcome.RIGHT, Outcome.REFUSED), result
    assert result.unchecked == result.outcome
