"""Tables of convolutions: each layer stays an operator that both sides can compute."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import onnx
import pytest
from rows.base import RowError
from rows.convolution_models import RESNET18, WOODPECKER, write_model
from rows.convolutions import TABLES, figures_of, judge
from study_problems import PAPER_ROWS, ROWS
from support.plans.candidates import kernel, library_call

from wpk.libraries.cudnn_problems import why_not
from wpk.lowering.model import lower_model
from wpk.plan.measurement import Contestant, Measurement, Ratio
from wpk.problems import Convolution, Problem


@pytest.mark.parametrize("name", TABLES)
def test_every_layer_is_one_operator_that_cudnn_can_be_asked_for(tmp_path: Path, name: str) -> None:
    table, path = TABLES[name], tmp_path / "convolutions.onnx"
    write_model(path, table.layers, table.precision, table.batch)
    onnx.checker.check_model(path, full_check=True)
    found = {}
    for operator in lower_model(path, {}, table.precision).program.operators:
        for layer in set(operator.nodes) & table.layers.keys():
            found[layer] = operator.problem
    assert found.keys() == table.layers.keys()
    for layer, problem in found.items():
        assert isinstance(problem, Convolution)
        assert why_not(problem) is None, layer
        asked = table.layers[layer]
        assert (problem.c, problem.k, (problem.h, problem.w)) == (asked.c, asked.k, asked.size)
        assert problem.n.value == table.batch
        assert problem.x.strides[1] == 1 or problem.c == 3
        assert problem.y.strides[1] == 1
        assert ("Relu" in repr(problem.epilogue.expression)) == (problem.filter[0] > 1)


def test_the_papers_layers_are_those_that_the_searchers_were_studied_on(tmp_path: Path) -> None:
    table, path = TABLES["paper_table"], tmp_path / "convolutions.onnx"
    write_model(path, WOODPECKER, table.precision, table.batch)
    operators = lower_model(path, {}, table.precision).program.operators
    problem_of = {node: each.problem for each in operators for node in each.nodes}
    for layer, row in zip(WOODPECKER, PAPER_ROWS, strict=True):
        assert _plain(problem_of[layer]) == ROWS[row]


def _plain(problem: Problem) -> Problem:
    """Without what is known of operands, which the studies do not use."""
    assert isinstance(problem, Convolution)
    operands = tuple(replace(each, constant=False) for each in problem.epilogue.operands)
    return replace(problem, epilogue=replace(problem.epilogue, operands=operands))


FAST, EVEN, SLOW = Ratio(12.0, 11.0, 13.0), Ratio(3.0, 2.9, 3.1), Ratio(0.5, 0.4, 0.6)


def test_a_table_is_held_to_its_mean_its_largest_and_its_smallest() -> None:
    table = replace(TABLES["convolutions.fp32"], layers=dict(list(RESNET18.items())[:2]))
    first, second = table.layers
    good = judge(table, {first: FAST, second: EVEN})
    assert good.passed
    assert good.figures["geometric_mean"] == pytest.approx(6.0)
    mean, largest = good.figures["goals"]
    assert mean["low"] == pytest.approx((11.0 * 2.9) ** 0.5)
    assert (largest["value"], largest["reached"]) == (12.0, True)
    assert not judge(table, {first: EVEN, second: EVEN}).passed
    assert not judge(table, {first: FAST}).passed  # complete it must be
    with_least = replace(table, mean=1.6, most=None, least=0.9)
    assert judge(with_least, {first: FAST, second: EVEN}).passed
    refused = judge(with_least, {first: FAST, second: SLOW})
    assert [goal["reached"] for goal in refused.figures["goals"]] == [True, False]
    assert not refused.passed


def test_without_cudnn_there_is_no_table() -> None:
    with pytest.raises(RowError, match="compared with none"):
        judge(TABLES["paper_table"], {})


def contestant(median: float, *, is_library: bool) -> Contestant:
    candidate = library_call(()) if is_library else kernel("conv_mma", ())
    low, high = 0.9 * median, 1.1 * median
    return Contestant(candidate, median, low, high, 11, side_by_side=True)


def test_a_speedup_is_the_librarys_time_over_ours() -> None:
    ours, theirs = contestant(2e-6, is_library=False), contestant(3e-6, is_library=True)
    figures = figures_of(Measurement(ours, (theirs,), "warm", (), 0, "exhausted"))
    assert figures["speedup"]["median"] == pytest.approx(1.5)
    assert figures["speedup"]["low"] == pytest.approx(1.5 * 0.9 / 1.1)
    assert figures["generated"]["candidate"]["maker"]["name"] == "conv_mma"
    assert figures["cudnn"]["candidate"]["maker"]["name"] == "cuDNN"


def test_without_a_library_there_is_no_speedup() -> None:
    ours = contestant(2e-6, is_library=False)
    figures = figures_of(Measurement(ours, (), "warm", (), 0, "exhausted", ("no engine",)))
    assert figures["speedup"] is None
    assert figures["refusals"] == ["no engine"]
