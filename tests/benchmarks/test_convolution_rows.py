"""ResNet-18's convolutions as one model: each stays an operator that both sides can compute."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from rows.convolutions import LAYERS, figures_of, write_model

from wpk.dtypes import Precision
from wpk.libraries.cudnn_problems import why_not
from wpk.lowering.model import lower_model
from wpk.plans.measurement import Contestant, Measurement
from wpk.problems import Convolution


@pytest.mark.parametrize("precision", list(Precision))
def test_every_layer_is_one_operator_that_cudnn_can_be_asked_for(
    tmp_path: Path, precision: Precision
) -> None:
    path = tmp_path / "convolutions.onnx"
    write_model(path, precision.value)
    onnx.checker.check_model(path, full_check=True)
    found = {}
    for operator in lower_model(path, {}, precision).program.operators:
        for layer in set(operator.nodes) & LAYERS.keys():
            found[layer] = operator.problem
    assert found.keys() == LAYERS.keys()
    for layer, problem in found.items():
        assert isinstance(problem, Convolution)
        assert why_not(problem) is None, layer
        assert (problem.c, problem.k, problem.h) == LAYERS[layer][:3]
        assert problem.x.strides[1] == 1 or problem.c == 3
        assert problem.y.strides[1] == 1
        assert ("Relu" in repr(problem.epilogue.expression)) == (problem.filter[0] > 1)


def contestant(median: float, *, is_library: bool) -> Contestant:
    maker = "cuDNN" if is_library else "conv_mma"
    low, high = 0.9 * median, 1.1 * median
    return Contestant(maker, "1", (), is_library, median, low, high, 11, side_by_side=True)


def test_a_speedup_is_the_librarys_time_over_ours() -> None:
    ours, theirs = contestant(2e-6, is_library=False), contestant(3e-6, is_library=True)
    figures = figures_of(Measurement(ours, (theirs,), "warm", (), 0, "exhausted"))
    assert figures["speedup"]["median"] == pytest.approx(1.5)
    assert figures["speedup"]["low"] == pytest.approx(1.5 * 0.9 / 1.1)
    assert figures["generated"]["maker"] == "conv_mma"
    assert figures["cudnn"]["maker"] == "cuDNN"


def test_without_a_library_there_is_no_speedup() -> None:
    ours = contestant(2e-6, is_library=False)
    figures = figures_of(Measurement(ours, (), "warm", (), 0, "exhausted", ("no engine",)))
    assert figures["speedup"] is None
    assert figures["refusals"] == ["no engine"]
