"""Today's models choose, of recorded problems, schedules that are nearly the fastest: where little is measured, they decide.

What was recorded of one problem is the best that anybody found (tests/replay/h100, an H100 in fp16, fp32 and tf32).
"""

from pathlib import Path

import numpy as np
import pytest
from constants_study import CONSTANTS, Chosen, by_problem, changed, chosen, effects, main, means
from spaces.recorded import RecordedSpace, read_spaces

from wpk.performance import rates, waves
from wpk.search.models import estimates

RECORDINGS = Path(__file__).parents[1] / "replay" / "h100"

MEAN, WORST, OFF = 1.06, 1.2, 1.15
"""Of the best of the first three over the fastest, on average and of each problem; and how far estimates are off."""

KNOWN = {"resnet50.stem.fp16": 1.45, "gpt2.decode.fp16": 1.3}
"""Problems whose first three are further off, and how far: three channels, whose fastest kernels read words; and a
product of one row, recorded before a template for few rows was."""

Problems = dict[str, list[RecordedSpace]]


@pytest.fixture(scope="module")
def problems() -> Problems:
    """What was recorded, all templates of a problem together."""
    return by_problem([space for space in read_spaces(RECORDINGS) if len(space.kept)])


@pytest.fixture(scope="module")
def found(problems: Problems) -> list[Chosen]:
    """How today's models do."""
    return [chosen(*each) for each in problems.items()]


def test_the_first_three_hold_nearly_the_fastest(found: list[Chosen]) -> None:
    assert len(found) == 22
    first, off = means(found)
    assert first < MEAN
    assert off < OFF
    for each in found:
        assert each.first < KNOWN.get(each.name, WORST), each
    assert all(each.first > WORST for each in found if each.name in KNOWN), "it is known no more"


def test_a_model_that_is_wrong_is_seen(problems: Problems) -> None:
    """Whose L2 is slower than any measurement of it."""
    with changed("wpk.performance.waves", "COPIED_L2", 0.5):
        first, off = means([chosen(*each) for each in problems.items()])
    assert first > MEAN
    assert off > OFF


def test_a_constant_is_changed_wherever_it_was_imported_and_restored() -> None:
    before = rates.FILL_CYCLES
    with changed("wpk.performance.rates", "FILL_CYCLES", 2.0):
        assert rates.FILL_CYCLES == waves.FILL_CYCLES == 2 * before
    assert rates.FILL_CYCLES == waves.FILL_CYCLES == before


def test_a_default_is_changed_with_its_constant() -> None:
    limits = np.asarray([1.0]), np.asarray([1.0])
    before = float(waves.overlapped(*limits)[0])
    with changed("wpk.performance.waves", "OVERLAP", 2.0):
        assert waves.overlapped(*limits)[0] < before - 0.1
    assert waves.overlapped(*limits)[0] == before


def test_what_is_no_number_is_refused() -> None:
    with (
        pytest.raises(ValueError, match=r"attention_mma\._UNDER_WAY is .* no number"),
        changed("wpk.schedules.attention_mma", "_UNDER_WAY", 2.0),
    ):
        pass


def test_every_constant_exists_and_some_move_the_estimates(problems: Problems) -> None:
    one = {"resnet50.3x3_14.fp16": problems["resnet50.3x3_14.fp16"]}
    (space, *_) = one["resnet50.3x3_14.fp16"]
    before = estimates(space.problem, space.template, space.target, space.columns(space.kept))
    told = dict(effects(one))
    assert len(told) == sum(map(len, CONSTANTS.values()))
    now = means([chosen(*each) for each in one.items()])
    assert any(values[1] != now[1] for values in told.values())
    after = estimates(space.problem, space.template, space.target, space.columns(space.kept))
    np.testing.assert_array_equal(before, after)


def test_the_study_tells_both_tables(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--recordings", str(RECORDINGS), "--only", "gpt2.decode"])
    told = capsys.readouterr().out
    assert "gpt2.decode.fp16" in told
    assert "performance.waves.COPIED_L2" in told
    with pytest.raises(SystemExit, match="no recorded problem has nothing in its name"):
        main(["--recordings", str(RECORDINGS), "--only", "nothing"])
