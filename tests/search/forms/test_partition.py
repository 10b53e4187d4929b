"""The best partition, on models that exist as lists of operators only: no graph, no kernel, no GPU."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pytest
from support.merged_row import A, B, C, Model, NoGraph

from wpk.graph_passes import every_site
from wpk.plan import FormOutcome
from wpk.search.forms.judges import ByMeasuring, ByModels, Proposal
from wpk.search.forms.partition import MAX_ROUNDS, Partitioning, best_partition, proposed
from wpk.search.forms.times import ERROR, MARGIN, Comparison, promise


def outcomes(found: Partitioning) -> dict[str, FormOutcome]:
    return {each.site: each.outcome for each in found.tried}


def test_where_every_merge_pays_nothing_is_taken_back() -> None:
    found = Model(seconds={"wxyz": 3e-3}).search()
    assert found.best.changed == frozenset()
    assert set(outcomes(found).values()) == {FormOutcome.SLOWER}
    assert found.partitions == 4


def test_a_merge_that_is_slower_is_taken_back_alone() -> None:
    found = Model(seconds={"wxyz": 6e-3, "wx": 1e-3, "yz": 1e-3}).search()
    assert found.best.changed == {B}
    assert outcomes(found)[B] is FormOutcome.TAKEN


def test_several_are_taken_back_together_while_each_makes_the_whole_faster() -> None:
    # Alone all three pay; behind B, A still does and C does not.
    times = {"wxyz": 9e-3, "w": 1e-3, "x": 1e-3, "wx": 3e-3, "yz": 1e-3, "xyz": 5e-3, "wxy": 6e-3}
    found = Model(seconds=times).search()
    assert found.best.changed == {A, B}
    assert outcomes(found) == {A: FormOutcome.TAKEN, B: FormOutcome.TAKEN, C: FormOutcome.SLOWER}


def test_what_only_a_new_partition_has_is_tried_in_the_next_round() -> None:
    times = {"wxyz": 9e-3, "wx": 3e-3, "yz": 1e-3, "w": 0.5e-3, "x": 0.5e-3}
    found = Model(seconds=times, late={A: B}).search()
    assert found.best.changed == {A, B}


def test_each_operator_is_measured_once_and_each_form_lowered_once() -> None:
    model = Model(seconds={"wxyz": 9e-3})
    found = model.search()
    assert len(set(model.measured)) == len(model.measured)
    assert "wxyz" not in model.measured  # it was known
    assert len(set(model.lowered)) == len(model.lowered)
    assert found.best.problems.total() > 1


def test_what_the_models_rule_out_is_not_measured() -> None:
    times = {"wxyz": 9e-3, "z": 0.1e-3}
    model = Model(seconds=times, estimates={"wxyz": 4e-3, "w": 3e-3, "z": 1.1e-3})
    found = model.search()
    assert outcomes(found)[A] is FormOutcome.HOPELESS
    assert {"w", "xyz"}.isdisjoint(model.measured)
    (tried,) = (each for each in found.tried if each.site == A)
    assert tried.measured is None
    assert tried.predicted is not None
    assert tried.predicted_usual is not None
    assert tried.predicted > MARGIN * tried.predicted_usual
    assert A not in found.best.changed
    assert C in found.best.changed  # the models are a little against it, and err


def test_nothing_is_worth_measuring_where_all_is_ruled_out() -> None:
    model = Model(estimates={"wxyz": 1e-3})
    fixed = model.form(frozenset())
    assert proposed(NoGraph(model, fixed), model.estimate, list(fixed.sites)) == []
    assert model.search().best.changed == frozenset()
    assert not model.measured


def test_equal_partitions_are_compared_once() -> None:
    model = Model(merges={A: 2, B: 2}, seconds={"wxyz": 9e-3})
    found = model.search()
    assert sorted(outcomes(found).values()) == [FormOutcome.EQUAL, FormOutcome.TAKEN]
    assert found.partitions == 2


def test_a_form_that_nothing_computes_is_refused_and_says_why() -> None:
    found = Model(refused=("w",), seconds={"wxyz": 9e-3}).search()
    (tried,) = (each for each in found.tried if each.site == A)
    assert (tried.outcome, tried.reason) == (FormOutcome.REFUSED, "no template computes w")


def test_classes_of_sites_decide_before_the_whole_pass() -> None:
    # All apart is the fastest form that is tried at first, and one class apart is faster than that.
    times = {"wxyz": 9e-3, "w": 1e-3, "x": 2e-3, "y": 2e-3, "z": 2e-3, "xyz": 1e-3}
    keys = [every_site("join"), A, B, C]
    found = Model(seconds=times).search(keys=keys)
    assert found.best.changed == {A}
    assert outcomes(found)[every_site("join")] is FormOutcome.SLOWER


def test_classes_of_a_pass_that_is_ruled_out_as_a_whole_are_not_looked_at() -> None:
    model = Model(estimates={"wxyz": 3e-3}, seconds={"wxyz": 9e-3})
    found = model.search(keys=[every_site("join"), A, B])
    assert set(outcomes(found).values()) == {FormOutcome.HOPELESS}
    assert model.lowered == [frozenset({every_site("join")})]


def test_when_the_time_is_over_no_further_form_is_looked_at() -> None:
    model = Model(seconds={"wxyz": 9e-3})
    found = model.search(is_over=lambda: len(model.lowered) >= 1)
    kinds = list(outcomes(found).values())
    assert kinds[1:] == [FormOutcome.NOT_MEASURED] * 2
    assert len(model.lowered) <= 1 + MAX_ROUNDS


@pytest.mark.parametrize(("factor", "taken"), [(0.9, False), (0.7, True)])
def test_models_alone_take_back_only_what_they_are_sure_of(factor: float, taken: bool) -> None:
    model = Model(estimates={"wx": factor * 2e-3, "yz": factor * 2e-3})
    fixed = model.form(frozenset())
    found = best_partition(NoGraph(model, fixed), model.estimate, ByModels(model.estimate))
    assert (B in found.best.changed) is taken


def test_what_did_not_run_decides_nothing() -> None:
    model = Model(seconds={"wxyz": 9e-3})
    fixed = model.form(frozenset())

    def measure(_proposals: Sequence[Proposal], problems: Collection[Any]) -> Mapping[Any, float]:
        return {problem: model.time(problem) for problem in problems if problem != "w"}

    judge = ByMeasuring(measure, {"wxyz": 9e-3})  # type: ignore[dict-item]
    found = best_partition(NoGraph(model, fixed), model.estimate, judge)
    assert outcomes(found)[A] is FormOutcome.NOT_MEASURED
    assert A not in found.best.changed


def _together(**changes: Any) -> Model:
    """A node that is fast alone only, between two merges: without one of them nothing is gained."""
    times = {"wxyz": 4e-3, "x": 0.1e-3, "w": 1e-3, "yz": 1e-3, "wx": 3e-3, "xyz": 4e-3, **changes}
    return Model(seconds=times, estimates=times, meet=True)


def test_two_merges_of_which_only_both_pay_are_taken_back_together() -> None:
    model = _together()
    found = model.search()
    assert found.best.changed == {A, B}
    (pair,) = (each for each in found.tried if each.also)
    assert (pair.keys, pair.outcome, pair.places) == ((A, B), FormOutcome.TAKEN, 2)
    alone = [each.outcome for each in found.tried if not each.also and each.site in (A, B)]
    assert FormOutcome.TAKEN not in alone


def test_what_does_not_meet_is_not_tried_together() -> None:
    model = _together()
    model.meet = False
    assert model.search().best.changed == frozenset()


def test_a_pair_is_measured_and_stays_where_it_is_slower() -> None:
    model = _together()
    model.seconds = {**model.seconds, "x": 9e-3}
    found = model.search()
    (pair,) = (each for each in found.tried if each.also)
    assert pair.outcome is FormOutcome.SLOWER
    assert found.best.changed == frozenset()


def test_a_pair_of_which_models_predict_no_gain_is_neither_noted_nor_measured() -> None:
    model = _together(x=2.1e-3)
    found = model.search()
    assert not any(each.also for each in found.tried)
    assert "x" not in model.measured


def test_no_pair_is_lowered_when_the_time_is_over() -> None:
    model = _together()
    model.search(is_over=lambda: len(model.lowered) >= 3)
    assert frozenset({A, B}) not in model.lowered


def test_what_the_models_are_surest_of_is_measured_first() -> None:
    sure, large, hardly = Comparison(10.0, 5.0), Comparison(100.0, 94.0), Comparison(10.0, 9.0)
    assert sorted([hardly, large, sure], key=promise, reverse=True) == [sure, large, hardly]
    assert promise(Comparison(ERROR, 1.0))[0] == 0.0


def test_a_choice_that_was_begun_with_is_decided_again_and_is_noted_so() -> None:
    # Apart at A and B to begin with; joined at A again is faster, and C alone is not.
    times = {
        "w": 1e-3,
        "x": 1e-3,
        "yz": 1e-3,
        "wx": 1e-3,
        "xyz": 9e-3,
        "wxyz": 9e-3,
        "y": 2e-3,
        "z": 2e-3,
    }
    model = Model(seconds=times, estimates=times)
    begun = model.form(frozenset({A, B}))
    judge = ByMeasuring(model.measure, {p: model.time(p) for p in begun.problems})
    found = best_partition(NoGraph(model, begun), model.estimate, judge, [A, C])
    assert found.best.changed == {B}
    noted = {each.site: each for each in found.tried}
    assert (noted[A].again, noted[A].outcome) == (True, FormOutcome.TAKEN)
    assert not noted[C].again


def test_two_that_were_begun_with_are_both_decided_again_where_both_gain() -> None:
    times = {"w": 5e-3, "x": 5e-3, "yz": 1e-3, "wx": 1e-3, "xyz": 1e-3, "wxyz": 1e-3}
    model = Model(seconds=times, estimates=times)
    begun = model.form(frozenset({A, B}))
    judge = ByMeasuring(model.measure, {p: model.time(p) for p in begun.problems})
    found = best_partition(NoGraph(model, begun), model.estimate, judge, [A, B])
    assert found.best.changed == frozenset()
