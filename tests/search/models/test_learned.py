"""The learned costs that come with wpk."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from spaces.recorded import read_spaces
from subjects.problems import convolution, matmul

from wpk.dtypes import Precision
from wpk.schedules import TEMPLATE_OF
from wpk.search.models.learned import FILE, LearnedCosts, inputs_of, learned_seconds
from wpk.targets import find_target

H100, A100 = find_target("h100"), find_target("a100")
RECORDED = Path(__file__).parents[2] / "replay" / "h100"
SHIPPED = Path(__file__).parents[3] / "search" / "models" / FILE


def test_speaks_of_what_it_was_taught_only() -> None:
    product = matmul(128, 768, 768)
    template = TEMPLATE_OF["gemm_mma"]
    _, columns = template.space(product, H100)
    told = learned_seconds(product, template, H100, columns)
    assert told is not None
    assert (told > 0).all()
    assert learned_seconds(product, template, A100, columns) is None
    bytewise = replace(product, precision=Precision.INT8)
    assert learned_seconds(bytewise, template, H100, columns) is None
    depthwise = convolution(64, 64, 14, groups=64)
    other = TEMPLATE_OF["depthwise"]
    _, columns = other.space(depthwise, H100)
    assert learned_seconds(depthwise, other, H100, columns) is None


def test_says_what_it_was_taught_on() -> None:
    said = LearnedCosts(SHIPPED.read_bytes()).provenance
    assert {
        "gpu",
        "date",
        "schedules",
        "templates",
        "precisions",
        "networks",
        "trained by",
    } <= said.keys()
    machine = json.loads((RECORDED / "machine.json").read_text())
    assert (said["gpu"], said["date"]) == (machine["gpu"], machine["date"])


def test_is_one_ensemble_of_trees_over_the_inputs() -> None:
    (node,) = onnx.load(SHIPPED).graph.node
    assert node.op_type == "TreeEnsembleRegressor"
    product, template = matmul(128, 768, 768), TEMPLATE_OF["gemm_wgmma"]
    _, columns = template.space(product, H100)
    features = next(a.ints for a in node.attribute if a.name == "nodes_featureids")
    assert max(features) < inputs_of(product, template, H100, columns).shape[1]


@pytest.mark.parametrize("precision", [Precision.FP16, Precision.TF32])
def test_what_fits_no_sm_takes_for_ever(precision: Precision) -> None:
    product, template = matmul(128, 768, 768, precision=precision), TEMPLATE_OF["gemm_mma"]
    _, columns = template.space(product, H100)
    inputs = inputs_of(product, template, H100, columns)
    told = learned_seconds(product, template, H100, columns)
    assert told is not None
    assert (np.isinf(told) == ~np.isfinite(inputs).all(axis=1)).all()


def test_ranks_what_it_was_taught_better_than_the_estimate() -> None:
    # Not what it is worth, which the study of networks that taught nothing says: that the file is of these
    # recordings and of the inputs as they are computed today.
    better = []
    for space in read_spaces(RECORDED):
        told = learned_seconds(
            space.problem, space.template, H100, space.columns(np.arange(len(space.table)))
        )
        if told is None:
            continue
        ran = np.isfinite(space.costs)
        if ran.sum() > 50:
            errors = [
                np.abs(np.log(said[ran] / space.costs[ran])).mean()
                for said in (told, space.estimates)
            ]
            better.append(errors[0] < errors[1])
    assert len(better) > 40
    assert np.mean(better) > 0.95
