import hashlib
from pathlib import Path

import onnx
import pytest
from onnx import numpy_helper
from subjects import exported

NAMES = [
    "hf_distilbert.dynamo",
    "rnn_lstm.dynamo",
    "tv_densenet121.dynamo",
    "tv_inception_v3.dynamo",
    "tv_mobilenet_v2.dynamo",
    "tv_resnet18.dynamo",
    "tv_resnet18.script",
    "tv_resnet50.dynamo",
]


def _tensors(model: onnx.ModelProto) -> dict[str, bytes]:
    return {tensor.name: tensor.raw_data for tensor in model.graph.initializer}


def test_the_archive_holds_these_graphs() -> None:
    assert exported.model_names() == NAMES


def test_a_refilled_graph_is_whole(tmp_path: Path) -> None:
    assert exported.main(["tv_resnet18.script", str(tmp_path / "m.onnx")]) == 0
    model = onnx.load(tmp_path / "m.onnx")
    onnx.checker.check_model(model, full_check=True)
    assert sum(len(data) for data in _tensors(model).values()) > 40_000_000


def test_the_cut_of_seeds_is_the_one_that_results_refer_to() -> None:
    # Another way to seed would silently change what every recorded error refers to.
    model = exported.refill("tv_resnet18.dynamo", seed=0)
    (weight,) = [t for t in model.graph.initializer if t.name == "m.conv1.weight"]
    digest = hashlib.sha256(numpy_helper.to_array(weight).tobytes()).hexdigest()
    assert digest == "d9832c1d859dedef36a66b5eb822b8f0791eed421e834dd8921fbc1329f52ea0"


def test_another_seed_gives_other_weights_and_the_same_graph() -> None:
    first, second = (_tensors(exported.refill("rnn_lstm.dynamo", seed)) for seed in (0, 1))
    assert first.keys() == second.keys()
    assert first != second
    assert first == _tensors(exported.refill("rnn_lstm.dynamo", 0))


def test_refuses_a_name_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        exported.main(["nothing", "m.onnx"])
    assert "tv_resnet50.dynamo" in capsys.readouterr().err
