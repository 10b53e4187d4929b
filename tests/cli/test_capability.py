"""``wpk inspect MODEL.onnx`` says beforehand what carries a model."""

import json
from pathlib import Path

import onnx
import pytest
from support.networks.fallback_models import MODELS, text_model

from wpk.cli.main import main


def inspected(model: onnx.ModelProto, folder: Path, *options: str) -> int:
    onnx.save(model, folder / "m.onnx")
    return main(["inspect", str(folder / "m.onnx"), *options])


def test_nodes_of_kernels_and_of_onnxruntime_are_told_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert inspected(MODELS["nonzero"](), tmp_path) == 0
    text = capsys.readouterr().out
    assert "3 nodes are carried by 3 operators with kernels" in text
    assert "ONNX Runtime executes 4 in 1 steps" in text
    assert "NonZero: operator NonZero is not supported" in text


def test_programs_read_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert inspected(MODELS["lstm"](), tmp_path, "--json") == 0
    carried = json.loads(capsys.readouterr().out)["carried"]
    why = "operator LSTM is not supported; recurrent-operators: its input and forget gates are coupled"
    assert carried["handed"] == [
        {"nodes": [f"LSTM_0_{direction}"], "operators": ["LSTM"], "why": f"LSTM: {why}"}
        for direction in ("forward", "reverse")
    ]
    assert (carried["kernels"], carried["carried"], carried["refused"]) == (5, 4, "")


def test_what_is_not_carried_at_all_is_said_in_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "g (string[2] x) => (string[2] y) { y = Identity (x) }"
    assert inspected(text_model(text), tmp_path) == 0
    said = capsys.readouterr().out
    assert "no engine: the model has inputs or outputs that wpk does not carry" in said
    assert "STRING" in said
