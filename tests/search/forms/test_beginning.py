"""The form that tuning begins with, on models that exist as lists of operators only."""

from __future__ import annotations

from collections.abc import Sequence
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
