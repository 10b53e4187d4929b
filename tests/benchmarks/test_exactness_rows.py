"""Errors of strict fp32 beside PyTorch's: what they are held to."""

from __future__ import annotations

import pytest
from rows.exactness import judge, rows
from rows.networks import OURS

from wpk.checks.model_check import OutputDistance


@pytest.mark.parametrize(("ours", "passed"), [(1.0e-7, True), (2.1e-7, True), (2.3e-7, False)])
def test_the_most_exact_baseline_is_what_counts(ours: float, *, passed: bool) -> None:
    errors = {"eager": OutputDistance(3e-7, 1e-6), "compiled": OutputDistance(2e-7, 9e-6)}
    outcome = judge({**errors, OURS: OutputDistance(ours, 1e-5)})
    assert outcome.passed is passed
    assert outcome.figures["best_baseline"] == "compiled"
    (goal,) = outcome.figures["goals"]
    assert goal["value"] == pytest.approx(ours / 2e-7)


def test_ten_rows_are_convolutional_networks_in_fp32() -> None:
    names = [row.name for row in rows()]
    assert len(names) == 10
    assert {"exactness.resnet18.fp32.b1", "exactness.inception_v3.fp32.b32"} <= set(names)
    assert not [name for name in names if "distilbert" in name]
