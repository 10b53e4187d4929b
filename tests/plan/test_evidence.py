"""What a plan keeps of a tuned problem."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf, nan
from pathlib import Path
from typing import Any

import pytest
from support.plans.candidates import kernel, library_call

from wpk.candidate import GENERATED, Candidate
from wpk.errors import PlanError
from wpk.plan.checks.whole_plan import check_plan
from wpk.plan.forms import Begun, FormOutcome, FormSearch, TriedForm
from wpk.plan.measurement import (
    Curve,
    EngineMeasurement,
    EngineVariant,
    Measurement,
    Ratio,
    Tally,
)
from wpk.plan.plan import Plan, PlanBundle
from wpk.plan.plan_file import read_plan, write_plan
from wpk.search.loop.evidence import measurement_of
from wpk.search.loop.result import Stop, TuningResult
from wpk.trial import Regime, Status, Trial


def made_by(maker: str, number: int) -> Candidate:
    return library_call(number) if maker == "cuDNN" else kernel(maker, number)


def ran(maker: str, number: int, *microseconds: float, searcher: str = "") -> Trial:
    seconds = tuple(each / 1e6 for each in microseconds)
    return Trial(made_by(maker, number), Status.OK, seconds, proposer=searcher)


def failed(maker: str, number: int) -> Trial:
    return Trial(made_by(maker, number), Status.TIMED_OUT, (), "hangs")


TRIED = (
    ran("a", 1, 9.0, searcher="genetic"),
    ran("a", 2, 8.0, searcher="ppo"),
    failed("a", 3),
    ran("b", 4, 9.5, searcher="genetic"),
    ran("a", 5, 8.5, searcher="genetic"),
    ran("a", 6, 8.1, searcher="ppo"),
    ran("a", 7, 7.0, searcher="genetic"),
)
LIBRARY = (ran("cuDNN", 1, 7.5), ran("cuDNN", 2, 9.0), failed("cuDNN", 3))
FINALISTS = (ran("a", 7, 7.0, 7.2, 7.4), ran("a", 2, 7.8, 8.0, 8.2), ran("cuDNN", 1, 7.4, 7.5, 7.6))


TRIED_FORM = TriedForm("a:1", "joins", 1, FormOutcome.SLOWER, "", 1e-6, 0.0, 1e-6, 2e-6)


@pytest.fixture
def tuned(bundle: PlanBundle) -> TuningResult:
    return TuningResult(
        problem=bundle.plan.steps[0].operator.problem,
        compared=True,
        finalists=FINALISTS,
        tried=TRIED,
        known=2,
        stop=Stop.NO_IMPROVEMENT,
        lookups=("hit: 2 schedules",),
        library=LIBRARY,
        refusals=("no engine of the second form",),
    )


def measured_with(tuned: TuningResult, maker: str = "a", number: int = 7) -> Measurement:
    found = measurement_of(tuned, Regime.WARM, made_by(maker, number))
    assert found is not None
    return found


def test_the_choice_has_its_time_of_the_last_comparison(tuned: TuningResult) -> None:
    measured = measured_with(tuned)
    chosen = measured.chosen
    assert (chosen.candidate, chosen.samples) == (kernel("a", 7), 3)
    band = (chosen.low_seconds, chosen.median_seconds, chosen.high_seconds)
    assert band == pytest.approx((7e-6, 7.2e-6, 7.4e-6))
    assert chosen.side_by_side
    assert measured.is_generated
    assert measured.runner_up == measured.library
    assert measured.generated == chosen
    assert measured.library is not None
    assert measured.library.candidate == library_call(1)
    assert (measured.regime, measured.known) == ("warm", 2)
    assert measured.stop == "nothing improved for long"
    assert measured.lookups == tuned.lookups
    assert measured.refusals == tuned.refusals


def test_another_candidate_than_the_fastest_may_be_the_choice(tuned: TuningResult) -> None:
    measured = measured_with(tuned, "cuDNN", 1)
    assert not measured.is_generated
    assert measured.runner_up == measured.generated == measured_with(tuned).chosen


def test_a_choice_that_was_no_finalist_has_the_time_that_the_search_saw(
    tuned: TuningResult,
) -> None:
    measured = measured_with(tuned, "b", 4)
    assert measured.chosen.median_seconds == 9.5e-6
    assert not measured.chosen.side_by_side
    assert len(measured.others) == 3


@pytest.mark.parametrize("microseconds", [6.0, 20.0])
def test_each_library_keeps_its_best(tuned: TuningResult, microseconds: float) -> None:
    """Also one whose implementations were no finalists, whether or not another library is faster."""
    of_tensorrt = [
        replace(
            ran("cuDNN", number, microseconds + number), candidate=library_call(number, "TensorRT")
        )
        for number in (0, 1)
    ]
    measured = measured_with(replace(tuned, library=(*LIBRARY, *of_tensorrt)))
    found = {name: each.candidate for name, each in measured.libraries.items()}
    assert found == {"cuDNN": library_call(1), "TensorRT": library_call(0, "TensorRT")}
    assert measured.library == next(iter(measured.libraries.values()))
    assert measured.libraries["TensorRT"].median_seconds == pytest.approx(microseconds * 1e-6)
    assert not measured.libraries["TensorRT"].side_by_side


def test_a_choice_that_was_never_timed_has_no_evidence(tuned: TuningResult) -> None:
    for maker, number in (("a", 3), ("a", 8), ("c", 7)):
        assert measurement_of(tuned, Regime.WARM, made_by(maker, number)) is None
    nothing = replace(tuned, finalists=(), tried=(failed("a", 7),), library=())
    assert measurement_of(nothing, Regime.WARM, kernel("a", 7)) is None


def test_a_family_without_a_finalist_shows_what_the_search_saw(tuned: TuningResult) -> None:
    measured = measured_with(replace(tuned, finalists=FINALISTS[:2]))
    assert measured.library is not None
    assert measured.library.median_seconds == 7.5e-6
    assert not measured.library.side_by_side
    own = measured_with(replace(tuned, finalists=FINALISTS[2:]), "cuDNN", 1)
    assert own.generated is not None
    assert own.generated.candidate == kernel("a", 7)
    assert not own.generated.side_by_side


def test_finalists_that_were_not_compared_say_so(tuned: TuningResult) -> None:
    assert not measured_with(replace(tuned, compared=False)).chosen.side_by_side


def test_trials_are_counted_by_family_and_status(tuned: TuningResult) -> None:
    measured = measured_with(tuned)
    assert measured.tallies == (
        Tally(GENERATED, {"ok": 6, "timed_out": 1}),
        Tally("cuDNN", {"ok": 2, "timed_out": 1}),
    )
    assert (measured.trials, measured.failed) == (10, 2)


def test_curves_hold_improvements_of_each_template_and_searcher(tuned: TuningResult) -> None:
    points = {(c.maker, c.searcher): c.points for c in measured_with(tuned).curves}
    assert points == {
        ("a", "genetic"): ((1, 9e-6), (5, 8.5e-6), (7, 7e-6)),
        ("a", "ppo"): ((2, 8e-6),),
        ("b", "genetic"): ((4, 9.5e-6),),
    }


def test_a_speedup_has_the_band_that_both_medians_allow(tuned: TuningResult) -> None:
    measured = measured_with(tuned)
    assert measured.library is not None
    ratio = measured.chosen.speedup_over(measured.library)
    assert ratio.median == pytest.approx(7.5 / 7.2)
    assert ratio.low == pytest.approx(7.4 / 7.4)
    assert ratio.high == pytest.approx(7.6 / 7.0)


@pytest.mark.parametrize(
    ("low", "high", "apart"), [(1.01, 1.2, True), (0.8, 0.99, True), (0.99, 1.1, False)]
)
def test_a_band_around_1_tells_nothing_apart(low: float, high: float, apart: bool) -> None:
    assert Ratio((low + high) / 2, low, high).beyond_noise is apart


def measured_plan(bundle: PlanBundle, tuned: TuningResult) -> Plan:
    first, *rest = bundle.plan.steps
    measured = measured_with(tuned)
    evidence = replace(first.evidence, measurement=measured, in_engine_seconds=0.0)
    variant = EngineVariant("mixed", 2e-6, 1e-6, 3e-6, 0, 1)
    engine = EngineMeasurement((variant,), "mixed", (first.operator.name,))
    steps = (replace(first, evidence=evidence), *rest)
    return replace(bundle.plan, steps=steps, measurement=engine)


def test_measurements_survive_the_file(
    bundle: PlanBundle, tuned: TuningResult, tmp_path: Path
) -> None:
    plan = measured_plan(bundle, tuned)
    write_plan(tmp_path / "measured.plan", replace(bundle, plan=plan))
    assert read_plan(tmp_path / "measured.plan").plan == plan


def spoil_chosen(measured: Measurement, **fields: float) -> Measurement:
    return replace(measured, chosen=replace(measured.chosen, **fields))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda m: spoil_chosen(m, low_seconds=0.0), r"chosen.median_seconds: 0.0 is no time"),
        (lambda m: spoil_chosen(m, high_seconds=inf), r"chosen.median_seconds: inf is no time"),
        (lambda m: spoil_chosen(m, median_seconds=1.0), r"lies outside of its band"),
        (lambda m: replace(m, others=(spoil_chosen(m, low_seconds=nan).chosen,)), r"others\[0\]"),
        (lambda m: replace(m, tallies=(Tally("a", {"ok": -1}),)), r"counts less than nothing"),
        (lambda m: replace(m, curves=(Curve("a", "", ((2, 1.0), (1, 1.0))),)), r"do not rise"),
        (lambda m: replace(m, curves=(Curve("a", "", ((1, 0.0),)),)), r"0.0 is no time"),
        (lambda m: replace(m, curves=(Curve("a", "", ((0, 1.0),)),)), r"do not rise from 1"),
        (lambda m: replace(m, curves=(Curve("a", "", ((1, 1.0), (1, 0.5))),)), r"do not rise"),
    ],
)
def test_a_plan_with_impossible_times_is_refused(
    bundle: PlanBundle,
    tuned: TuningResult,
    change: Callable[[Measurement], Measurement],
    words: str,
) -> None:
    plan = measured_plan(bundle, tuned)
    (step,) = plan.steps
    evidence = replace(step.evidence, measurement=change(measured_with(tuned)))
    with pytest.raises(PlanError, match=words):
        check_plan(replace(plan, steps=(replace(step, evidence=evidence),)))


@pytest.mark.parametrize("seconds", [-1e-9, inf, nan])
def test_a_step_takes_no_impossible_time_in_the_engine(
    bundle: PlanBundle, tuned: TuningResult, seconds: float
) -> None:
    plan = measured_plan(bundle, tuned)
    (step,) = plan.steps
    evidence = replace(step.evidence, in_engine_seconds=seconds)
    with pytest.raises(PlanError, match=rf"evidence.in_engine_seconds: {seconds!r} is no time"):
        check_plan(replace(plan, steps=(replace(step, evidence=evidence),)))


def test_a_plan_may_have_counted_and_seen_nothing(bundle: PlanBundle, tuned: TuningResult) -> None:
    plan = measured_plan(bundle, tuned)
    (step,) = plan.steps
    tallies = (Tally("a", {}), Tally("b", {"ok": 0}))
    curves = (Curve("a", "", ()), Curve("a", "", ((1, 1.0),)))
    measured = replace(measured_with(tuned), tallies=tallies, curves=curves)
    evidence = replace(step.evidence, measurement=measured)
    check_plan(replace(plan, steps=(replace(step, evidence=evidence),)))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"chosen": "fastest"}, "'fastest' is none"),
        ({"undone": ("nobody",)}, "no operator 'nobody'"),
        (
            {"variants": (EngineVariant("mixed", 4e-6, 1e-6, 3e-6, 0, 1),)},
            r"variants\[0\].median_seconds: 4e-06 lies outside of its band",
        ),
    ],
)
def test_a_plan_whose_engines_refer_to_nothing_is_refused(
    bundle: PlanBundle, tuned: TuningResult, fields: dict[str, Any], words: str
) -> None:
    plan = measured_plan(bundle, tuned)
    assert plan.measurement is not None
    with pytest.raises(PlanError, match=words):
        check_plan(replace(plan, measurement=replace(plan.measurement, **fields)))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"chosen": ("a:1",)}, r"plan\.forms\.chosen"),
        ({"partitions": 0}, r"plan\.forms\.partitions"),
        ({"tried": (replace(TRIED_FORM, places=-1),)}, r"plan\.forms\.tried\[0\]\.places"),
        ({"tried": (replace(TRIED_FORM, measured=nan),)}, r"plan\.forms\.tried\[0\]"),
        ({"tried": (replace(TRIED_FORM, predicted=-1.0),)}, r"plan\.forms\.tried\[0\]"),
        ({"begun": Begun((), 3, 0.0, 1e-6)}, r"plan\.forms\.begun"),
        ({"begun": Begun((), 3, 1e-6, nan)}, r"plan\.forms\.begun"),
        ({"begun": Begun((), -1, 1e-6, 1e-6)}, r"plan\.forms\.begun\.looked_at"),
    ],
)
def test_a_search_for_a_form_that_contradicts_the_plan_is_refused(
    bundle: PlanBundle, changes: dict[str, Any], reason: str
) -> None:
    search = FormSearch((TRIED_FORM,), 2, (), (), measured=True, begun=Begun((), 1, 2e-6, 2e-6))
    check_plan(replace(bundle.plan, forms=search))
    with pytest.raises(PlanError, match=reason):
        check_plan(replace(bundle.plan, forms=replace(search, **changes)))
