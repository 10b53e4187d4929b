"""Schedules and ONNX operators in words."""

import pytest

from wpk.problems.family import Family
from wpk.problems.signs import MINUS, TIMES
from wpk.report.plans.facts import ReportFacts
from wpk.report.plans.words import kind_of_onnx, schedule_words


def plain(words: str) -> str:
    return words.replace(TIMES, "x").replace(MINUS, "-")


def test_puts_axes_of_one_thing_together() -> None:
    schedule = (("block_m", 64), ("block_n", 32), ("warps_m", 2), ("warps_n", 1), ("stages", 4))
    assert plain(schedule_words(schedule)) == "block 64x32, warps 2x1, stages 4"


@pytest.mark.parametrize(
    ("operator", "kind"),
    [
        ("Conv", "convolution"),
        ("ConvTranspose", "convolution"),
        ("Gemm", "matrix product"),
        ("GlobalAveragePool", "reduction"),
        ("AveragePool", "pooling"),
        ("LayerNormalization", "normalisation"),
        ("Transpose", "movement"),
        ("Relu", "element-wise"),
    ],
)
def test_knows_the_family_of_an_onnx_operator(operator: str, kind: str) -> None:
    assert kind_of_onnx(operator) == kind


def test_every_operator_of_a_plan_has_words_and_a_family(facts: ReportFacts) -> None:
    assert all(operator.work for operator in facts.operators)
    assert {operator.kind for operator in facts.operators} <= set(Family)
