"""A sample of random models: right or refused in words, with and without checks."""

from pathlib import Path
from random import Random

import pytest
from fuzzing import corpus
from fuzzing.builder import Rejected
from fuzzing.graphs import draw
from fuzzing.running import GOOD, Outcome, run_case
from support.plans.warm import Warm

SAMPLE = range(100, 108)


@pytest.mark.parametrize("seed", SAMPLE)
def test_a_drawn_model_is_right_or_refused(warm_without_cubins: Warm, seed: int) -> None:
    try:
        case = draw(Random(seed), f"seed {seed}")
    except Rejected as why:
        pytest.skip(str(why))
    result = run_case(case, warm_without_cubins, check="both")
    assert result.outcome in GOOD, result
    assert result.unchecked in (*GOOD, None), result


@pytest.mark.parametrize("path", corpus.files(), ids=lambda path: path.stem)
def test_what_failed_once_is_right_or_refused(warm_without_cubins: Warm, path: Path) -> None:
    case = corpus.read_case(path)
    result = run_case(case, warm_without_cubins, check="both")
    assert result.outcome in (Outcome.RIGHT, Outcome.REFUSED), result
    assert result.unchecked == result.outcome
