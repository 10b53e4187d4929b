"""The form that tuning begins with, on models that exist as lists of operators only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from support.merged_row import A, B, C, Model, NoGraph

from wpk.plan import FormOutcome
from wpk.search.forms.beginning import Beginning, beginning

ALL = ((A, B, C),)
EACH = ((A,), (B,), (C,))


def begun(model: Model, kinds: Sequence[tuple[str, ...]], **options: Any) -> Beginning:
    return beginning(NoGraph(model, model.form(frozenset())), model.estimate, kinds, **options)


def test_it_is_the_passes_own_where_no_other_is_faster_by_estimates() -> None:
    model = Model(estimates={"wxyz": 3e-3})
    found = begun(model, EACH)
    assert found.form.changed == frozenset()
    assert (found.tried, found.looked_at) == ((), 3)


@pytest.mark.parametrize(("factor", "changed"), [(0.995, set()), (0.98, {B})])
def test_a_gain_that_would_be_noise_if_it_were_measured_is_none(
    factor: float, changed: set[str]
) -> None:
    model = Model(estimates={"wx": factor * 2e-3, "yz": factor * 2e-3})
    assert begun(model, EACH).form.changed == changed


def test_what_gains_is_taken_back_together_and_noted_with_its_estimates() -> None:
    times = {"wxyz": 9e-3, "xyz": 6e-3, "wx": 6e-3, "yz": 2e-3, "wxy": 9e-3}
    found = begun(Model(estimates=times), EACH)
    assert found.form.changed == {A, B}
    noted = {each.site: each for each in found.tried}
    assert {each.outcome for each in found.tried} == {FormOutcome.BEGUN}
    assert (noted[B].predicted_usual, noted[B].predicted) == pytest.approx((9e-3, 8e-3))


def test_what_gains_alone_and_not_with_others_stays() -> None:
    # A and B gain alone; behind A, which gains more, B is slower.
    times = {"wxyz": 9e-3, "w": 1e-3, "xyz": 2e-3, "wx": 2e-3, "yz": 5e-3, "x": 9e-3}
    found = begun(Model(estimates=times), EACH)
    assert found.form.changed == {A}
    assert [each.site for each in found.tried] == [A]


def test_a_kind_whose_classes_cannot_be_told_apart_is_decided_at_once() -> None:
    model = Model(estimates={"wxyz": 9e-3, "w": 1e-3, "x": 1e-3, "y": 1e-3, "z": 1e-3})
    found = begun(model, ALL, is_over=lambda: len(model.lowered) > 0)
    assert found.form.changed == {A, B, C}
    assert model.lowered == [frozenset({A, B, C})]
    assert all("2 others" in each.reason for each in found.tried)


def test_classes_of_a_kind_that_gains_are_looked_at_one_by_one_while_there_is_time() -> None:
    # All apart gain, and so does A alone, which is all of the gain.
    times = {"wxyz": 9e-3, "w": 1e-3, "xyz": 2e-3, "wx": 8e-3, "yz": 8e-3, "wxy": 8e-3, "z": 8e-3}
    model = Model(estimates={**times, "x": 2e-3, "y": 2e-3})
    model.estimates["z"] = 3e-3
    found = begun(model, ALL)
    assert found.form.changed == {A}
    assert found.looked_at == 4


def test_what_nothing_computes_or_lowering_refuses_is_not_begun_with() -> None:
    model = Model(refused=("w",), estimates={"wxyz": 9e-3})
    found = begun(model, EACH)
    assert A not in found.form.changed
    assert found.form.changed


def test_when_the_time_is_over_no_further_kind_is_looked_at() -> None:
    model = Model(estimates={"wxyz": 9e-3})
    found = begun(model, EACH, is_over=lambda: len(model.lowered) > 0)
    assert found.form.changed == {A}
    assert begun(model, EACH, is_over=lambda: True).form.changed == frozenset()


def test_what_only_pays_behind_another_choice_is_found_where_that_choice_is_a_loss() -> None:
    # Behind A, which alone is slower, B shows over a node that A decides over; both together gain, and C does not.
    times = {"wxyz": 4e-3, "w": 1e-3, "xyz": 9e-3, "x": 1e-3, "yz": 1e-3}
    late = Model(estimates=times, late={B: A}, meet=True, words={B: "apart"})
    found = begun(late, EACH)
    assert found.form.changed == {A, B}
    assert {each.site: each.usual for each in found.tried} == {A: "merges", B: "apart"}
    assert all(each.reason == "with 1 other" for each in found.tried)
    assert (found.tried[0].predicted_usual, found.tried[0].predicted) == (4e-3, 3e-3)


def test_behind_a_choice_nothing_is_looked_at_that_was_there_before() -> None:
    times = {"wxyz": 4e-3, "w": 1e-3, "xyz": 9e-3, "x": 1e-3, "yz": 1e-3}
    for other in (
        Model(estimates=times, late={B: A}, meet=True),  # of a kind that was there
        Model(estimates=times, late={B: A}, words={B: "apart"}),  # over other nodes
    ):
        found = begun(other, ((A,),))
        assert (found.form.changed, found.looked_at) == (frozenset(), 1)


def test_no_time_is_left_for_what_is_behind_a_choice() -> None:
    times = {"wxyz": 4e-3, "w": 1e-3, "xyz": 9e-3, "x": 1e-3, "yz": 1e-3}
    model = Model(estimates=times, late={B: A}, meet=True, words={B: "apart"})
    assert begun(model, EACH, is_over=lambda: len(model.lowered) > 0).form.changed == frozenset()


def test_what_two_kinds_have_behind_them_is_decided_once() -> None:
    # B shows behind A and behind C, and gains with either, but not with both.
    times = {"wxyz": 9e-3, "w": 1e-3, "xyz": 9e-3, "x": 3e-3, "yz": 3e-3, "wxy": 9e-3, "z": 1e-3}
    times |= {"wx": 3.5e-3, "y": 3e-3, "xy": 0.5e-3}
    model = Model(estimates=times, meet=True, words={A: "one", B: "apart", C: "other"})
    form = model.form

    def shown(changed: frozenset[str]) -> Any:
        found = form(changed)
        sites = {k: s for k, s in found.sites.items() if k != B or {A, C} & changed}
        return replace(found, sites=sites)

    model.form = shown  # type: ignore[method-assign]
    found = begun(model, ((A,), (C,)))
    assert found.form.changed == {A, B}
    assert len({each.site for each in found.tried}) == len(found.tried)
