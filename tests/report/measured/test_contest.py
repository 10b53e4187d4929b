"""Why a choice won or lost, and what the contests of a plan come to."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.plans.candidates import kernel, library_call

from wpk.plan.measurement import GENERATED, Contestant, Measurement, Tally
from wpk.report.plans.contest import contest_of, contest_sentences, roles, tally_words, why_words


def timed(
    maker: str, microseconds: float, noise: float = 0.01, *, final: bool = True
) -> Contestant:
    seconds = microseconds * 1e-6
    low, high = seconds * (1 - noise), seconds * (1 + noise)
    candidate = library_call(1) if maker == "cuDNN" else kernel(maker, 1)
    return Contestant(candidate, seconds, low, high, 25, final)


def against(chosen: Contestant, *others: Contestant, **fields: object) -> Measurement:
    measured = Measurement(chosen, others, "warm", (), 0, "")
    return replace(measured, **fields)  # type: ignore[arg-type]


OWN, SLOW, LIBRARY = timed("conv_mma", 10.0), timed("conv_simt", 20.0), timed("cuDNN", 11.0)


@pytest.mark.parametrize(
    ("measured", "words"),
    [
        (against(OWN, LIBRARY), "10.0% faster than cuDNN's best, beyond noise"),
        (against(LIBRARY, timed("a", 12.1)), "10.0% faster than the best generated kernel, beyond"),
        (
            against(OWN, timed("cuDNN", 10.1)),
            "within noise of cuDNN's best, 1.0% ahead of it, and kept",
        ),
        (
            against(timed("cuDNN", 10.1), OWN),
            "within noise of the best generated kernel, 1.0% behin",
        ),
        (against(LIBRARY, OWN), "10.0% slower alone than the best generated kernel, beyond noise"),
        (against(LIBRARY), "no generated kernel ran correctly; the only candidate that ran"),
        (against(OWN), "the only candidate that ran correctly"),
        (against(OWN, SLOW), "100.0% faster than the runner-up, beyond noise"),
        (
            against(OWN, SLOW, refusals=("odd strides",)),
            "the library offers nothing: odd strides; 100.0% faster than the runner-up",
        ),
        (
            against(OWN, timed("cuDNN", 20.0, final=False)),
            "100.0% faster than cuDNN's best, beyond noise (not compared side by side)",
        ),
    ],
)
def test_says_why_the_choice_won_or_lost(measured: Measurement, words: str) -> None:
    assert why_words(measured).startswith(words)


def test_a_refusal_of_one_form_is_no_reason_where_another_ran() -> None:
    assert "odd" not in why_words(against(OWN, LIBRARY, refusals=("odd strides",)))


def test_says_that_the_faster_one_was_undone() -> None:
    words = why_words(against(LIBRARY, OWN), undone=True, engine="revised")
    assert words.endswith("; in the whole engine its rival did not pay, and was undone")


@pytest.mark.parametrize(
    ("engine", "words"),
    [("models", "the models' own choices"), ("library", "the library"), ("generated", "generated")],
)
def test_says_that_the_whole_engine_decided(engine: str, words: str) -> None:
    why = why_words(against(LIBRARY, OWN), engine=engine)
    assert f"; the whole engine was fastest with {words}" in why
    assert "whole engine" not in why_words(against(LIBRARY, OWN), engine="mixed")
    assert "whole engine" not in why_words(against(OWN, LIBRARY), engine=engine)


def test_one_candidate_may_have_several_roles() -> None:
    found = roles(against(OWN, LIBRARY, SLOW))
    assert found == [("chosen, generated best", OWN), ("runner-up, cuDNN's best", LIBRARY)]
    assert [name for name, _ in roles(against(LIBRARY, OWN))] == [
        "chosen, cuDNN's best",
        "runner-up, generated best",
    ]


def test_the_best_of_a_family_may_be_neither_chosen_nor_runner_up() -> None:
    near = timed("conv_mma", 10.5)
    assert roles(against(OWN, near, LIBRARY))[2] == ("cuDNN's best", LIBRARY)


def test_every_library_has_its_time() -> None:
    """TensorRT's stands beside cuDNN's, whichever is faster, and whether or not either was chosen."""
    slower = replace(timed("cuDNN", 13.0), candidate=library_call(0, "TensorRT"))
    faster = replace(slower, median_seconds=10.5e-6)
    near = timed("conv_mma", 10.2)
    for rivals, names in (
        ((LIBRARY, slower), ["cuDNN's best", "TensorRT's best"]),
        ((LIBRARY, faster), ["TensorRT's best", "cuDNN's best"]),
    ):
        found = roles(against(OWN, near, *rivals))
        assert [name for name, _ in found] == ["chosen, generated best", "runner-up", *names]
        assert {each for _, each in found[2:]} == set(rivals)


def test_trials_are_counted_in_words() -> None:
    tallies = (Tally(GENERATED, {"ok": 59, "wrong_result": 5}), Tally("cuDNN", {"ok": 2}))
    assert tally_words(against(OWN, tallies=tallies)) == (
        "generated 59 ok, 5 wrong result; cuDNN 2 ok"
    )


def test_only_operators_that_the_library_can_compute_are_counted() -> None:
    contest = contest_of(
        [
            None,
            against(OWN, SLOW),
            against(OWN, LIBRARY),
            against(timed("cuDNN", 30.0), timed("conv_mma", 60.0)),
            against(timed("cuDNN", 10.0), timed("conv_mma", 10.1)),
        ]
    )
    assert contest is not None
    assert (contest.library, contest.operators, contest.generated) == ("cuDNN", 3, 1)
    assert contest.share_by_number == 1 / 3
    assert contest.share_by_time == pytest.approx(10 / 50)
    assert (contest.faster, contest.even, contest.slower) == (1, 1, 1)
    assert contest.speedup == pytest.approx(1.1 ** (1 / 3))
    assert contest.generated_speedup == pytest.approx((1.1 * 0.5 * 10 / 10.1) ** (1 / 3))
    assert "1 of the 3 operators" in contest_sentences(contest)[0]
    assert "33% by number, 20% by time" in contest_sentences(contest)[0]


def test_without_a_library_there_is_no_contest() -> None:
    assert contest_of([None, against(OWN, SLOW)]) is None


def test_an_operator_without_a_generated_kernel_leaves_no_mean_of_them() -> None:
    contest = contest_of([against(LIBRARY), against(OWN, LIBRARY)])
    assert contest is not None
    assert contest.generated_speedup is None
    assert contest.slower == 1
    assert "generated kernels alone" not in contest_sentences(contest)[-1]
