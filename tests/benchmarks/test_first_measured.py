"""Today's models choose, of recorded problems, schedules that are nearly the fastest: where little is measured, they decide.

What was recorded of one problem is the best that anybody found: in tests/replay/h100 of 22 problems, most at batch 1, in fp16, fp32
and tf32, in tests/replay/h200 of 16 at batch 32, in fp16, in tests/replay/h200-beside of 5 more that compute beside products, and
in tests/replay/h200-thin of 12 of Swin's and thinner ones.
"""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from constants_study import CONSTANTS, Chosen, by_problem, changed, chosen, effects, main, means
from spaces.recorded import RecordedSpace, read_spaces

from wpk.performance import bound, rates, waves
from wpk.search.models import estimates
from wpk.targets import Target

REPLAY = Path(__file__).parents[1] / "replay"
RECORDINGS = REPLAY / "h100"

Problems = dict[str, list[RecordedSpace]]


@dataclass(frozen=True)
class Held:
    """What the models are held to on a recording.

    Attributes:
        problems: Recorded ones.
        mean: Of the best of the first three over the fastest.
        worst: The same of each problem.
        off: How far estimates of the fastest are off.
        known: Problems whose first three are further off, and how far.
        wrong: Times the rate of L2 with which models choose worse.
    """

    problems: int
    mean: float
    worst: float
    off: float
    known: dict[str, float]
    wrong: float = 0.5


HELD = {
    "h100": Held(22, 1.05, 1.2, 1.14, {"resnet50.stem.fp16": 1.45, "gpt2.decode.fp16": 1.3}),
    "h200": Held(16, 1.02, 1.08, 1.1, {}),
    "h200-beside": Held(5, 1.005, 1.03, 1.05, {}),
    "h200-thin": Held(
        12, 1.09, 1.1, 1.22, {"thin.24_b32.fp16": 1.91, "swin.patches_b32.fp16": 1.16}, wrong=2.0
    ),
}
"""By folder. Known are products of 24 and 48 terms, where models expect too much of gemm_wgmma; three channels, whose fastest
kernels read words; and a product of one row, recorded before a template for few rows was."""


@pytest.fixture(scope="module", params=HELD)
def recording(request: pytest.FixtureRequest) -> tuple[Held, Problems]:
    """A recording, all templates of a problem together, and what models are held to on it."""
    spaces = read_spaces(REPLAY / request.param)
    return HELD[request.param], by_problem([space for space in spaces if len(space.kept)])


@pytest.fixture(scope="module")
def problems() -> Problems:
    """Those of the first recording."""
    return by_problem([space for space in read_spaces(RECORDINGS) if len(space.kept)])


def test_the_first_three_hold_nearly_the_fastest(recording: tuple[Held, Problems]) -> None:
    held, problems = recording
    found: list[Chosen] = [chosen(*each) for each in problems.items()]
    assert len(found) == held.problems
    first, off = means(found)
    assert first < held.mean
    assert off < held.off
    for each in found:
        assert each.first < held.known.get(each.name, held.worst), each
    known = [each for each in found if each.name in held.known]
    assert all(each.first > held.worst for each in known), "it is known no more"


def test_a_model_that_is_wrong_is_seen(recording: tuple[Held, Problems]) -> None:
    """Whose L2 is slower than any measurement of it; of thin products faster, which favours what copies more."""
    held, problems = recording
    with changed("wpk.performance.waves", "COPIED_L2", held.wrong):
        first, off = means([chosen(*each) for each in problems.items()])
    assert first > held.mean
    assert off > held.off


def _least(space: RecordedSpace, target: Target) -> float:
    """The least of a recorded space's times, over the problem's bound on a target."""
    return float(space.costs.min() / bound(space.problem, target).seconds)


def test_nothing_recorded_is_faster_than_its_bound(recording: tuple[Held, Problems]) -> None:
    _, problems = recording
    spaces = [space for each in problems.values() for space in each]
    assert min(_least(space, space.target) for space in spaces) > 1
    third = 1 / 3
    wrong = [
        replace(
            space.target,
            l2_bandwidth=space.target.l2_bandwidth * third,
            peak_tensor=tuple((of, peak * third) for of, peak in space.target.peak_tensor),
        )
        for space in spaces
    ]
    assert min(map(_least, spaces, wrong)) < 1, "a bound that is three times as large is seen"


def test_all_that_is_recorded_is_legal_today(recording: tuple[Held, Problems]) -> None:
    for spaces in recording[1].values():
        for space in spaces:
            columns = space.columns(np.arange(len(space.table)))
            assert np.isfinite(space.estimates).all(), space.key
            schedules = [space.template.schedule(columns, row) for row in range(len(space.table))]
            legal = space.template.legal_among(schedules, space.problem, space.target)
            assert legal == schedules, space.key


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
