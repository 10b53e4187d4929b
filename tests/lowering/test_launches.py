"""How many operators networks become, as exporters write them; nothing is compiled here."""

from pathlib import Path

import onnx
import pytest
from subjects import exported

from wpk.dtypes import Precision
from wpk.lowering.model import lower_model

OPERATORS = {
    "hf_distilbert.dynamo": 23,  # seven a layer: attention is one, and so are query, key and value
    "tv_densenet121.dynamo": 123,  # normalisations are limits, transitions pool in their products
    "tv_inception_v3.dynamo": 81,  # 109 before the branches of its blocks were joined
    "tv_mobilenet_v2.dynamo": 54,
    "tv_resnet18.dynamo": 23,
    "tv_resnet50.dynamo": 55,  # the first block's shortcut and product are one
}


LARGER = {"tv_resnet50.dynamo"}
"""Whose kernels tests/graph_passes/fusion counts, too: lowered here among the exhaustive tests."""

NETWORKS = [
    pytest.param(name, marks=[pytest.mark.exhaustive] * (name in LARGER)) for name in OPERATORS
]


@pytest.mark.parametrize("network", NETWORKS)
def test_a_network_becomes_few_operators_and_no_copies(tmp_path: Path, network: str) -> None:
    path = tmp_path / "network.onnx"
    onnx.save(exported.refill(network), path)
    operators = lower_model(path, {}, Precision.FP16).program.operators
    assert [o.name for o in operators if o.note] == []
    assert len(operators) <= OPERATORS[network]
