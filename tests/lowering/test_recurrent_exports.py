"""Recurrent networks as torch's two exporters write them: how many kernels they take, and what they give."""

from itertools import product
from pathlib import Path

import numpy as np
import onnx
import pytest
from subjects import exported
from support.each_value import each_value
from support.networks import small_models

import wpk
from wpk.dtypes import Precision
from wpk.errors import UnsupportedError
from wpk.lowering.model import lower_model
from wpk.problems import Elementwise, Recurrence

pytestmark = pytest.mark.usefixtures("warm_without_cubins")

LAYERS = {
    "lstm1": 1,
    "lstm2_states": 2,
    "lstm2_bi": 4,
    "lstm2_bi_bf": 4,
    "lstm_last_bf": 2,
    "lstm_nobias": 1,
    "gru2": 2,
    "gru2_bi_bf_states": 4,
    "gru_h": 1,
    "rnn2": 2,
    "rnn_relu_bi": 2,
    "speech": 6,
    "decoder": 1,
}
"""Recurrences, each of one layer and direction, by the network."""

WITHOUT_COPIES = ("lstm1", "lstm2_bi", "lstm_last_bf", "lstm_nobias", "gru2")
REFUSED = {"rnn_relu_bi.dynamo": "flip_Gather"}
NAMES = exported.model_names(exported.RECURRENT)


def written(name: str, folder: Path) -> Path:
    path = folder / "model.onnx"
    onnx.save(exported.refill(name, 0, exported.RECURRENT), path)
    return path


@pytest.mark.parametrize("name", [name for name in NAMES if name not in REFUSED])
def test_every_layer_is_one_recurrence(name: str, tmp_path: Path) -> None:
    program = lower_model(written(name, tmp_path), {}, Precision.FP32).program
    problems = [operator.problem for operator in program.operators]
    network = name.split(".")[0]
    assert sum(isinstance(each, Recurrence) for each in problems) == LAYERS[network]
    if network in WITHOUT_COPIES:
        assert not any(isinstance(each, Elementwise) for each in problems)


@pytest.mark.parametrize("name", REFUSED)
def test_says_what_it_does_not_carry(name: str, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match=REFUSED[name]):
        lower_model(written(name, tmp_path), {}, Precision.FP32)


EXECUTED = (
    "lstm2_bi_bf.script.free",
    "lstm_last_bf.script.free",
    "gru2_bi_bf_states.dynamo",
    "rnn_relu_bi.script",
    "decoder.dynamo",
    "speech.script.free",
)
TWINS = ("lstm2_states.dynamo", "speech.dynamo")
"""Whose states and layers the others have, too."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "precision"),
    [
        *each_value(EXECUTED, ["fp32", "fp16"]),
        *(
            pytest.param(*each, marks=pytest.mark.exhaustive)
            for each in product(TWINS, ["fp32", "fp16"])
        ),
    ],
)
def test_gives_what_onnx_runtime_gives(name: str, precision: str, tmp_path: Path) -> None:
    path = written(name, tmp_path)
    wpk.optimize(path, tmp_path / "model.plan", target="h200", precision=precision)
    loose = 2e-5 if precision == "fp32" else 3e-2
    with wpk.load(tmp_path / "model.plan", device="cpu") as engine:
        for size in (1, 3):
            inputs = small_models.draw(path, 0, size)
            given = engine.run(inputs)
            for output, right in small_models.expected(path, inputs).items():
                np.testing.assert_allclose(given[output], right, loose, loose)
