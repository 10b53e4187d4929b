"""Parsers of what TensorRT writes, on documents of ours."""

from typing import Any

import pytest
from trt_choosing.documents import (
    AUTOTUNING,
    engine_10,
    engine_11,
    tensor_10,
    tensor_11,
)

from wpk.tensorrt import TensorRTError
from wpk.tensorrt.autotuning import parse_autotuning
from wpk.tensorrt.choosing import parse_engine, profile_of_reports


def _layer(tensor: Any) -> dict[str, Any]:
    return {
        "Name": "a\x1fb",
        "LayerType": "CaskConvolution",
        "Inputs": [tensor("x")],
        "Outputs": [tensor("y")],
        "TacticName": "fast",
        "Metadata": "[ONNX Layer: a]\x1e[ONNX Layer: b]",
    }


def test_the_forms_of_10_and_11_say_the_same() -> None:
    ten = parse_engine(engine_10([_layer(tensor_10)]))
    eleven = parse_engine(engine_11([_layer(tensor_11)]))
    assert ten.bindings == eleven.bindings == ("x", "y")
    for engine in (ten, eleven):
        (layer,) = engine.layers
        assert layer.name == "a + b"
        assert layer.metadata == "[ONNX Layer: a] + [ONNX Layer: b]"
        assert layer.tactic == "fast"
        assert layer.inputs[0].shape == (1, 8, 4, 4)
        assert layer.kind == "CaskConvolution"
    assert (ten.layers[0].inputs[0].format, ten.layers[0].inputs[0].type) == ("Half", "")
    assert (eleven.layers[0].inputs[0].format, eleven.layers[0].inputs[0].type) == ("kHWC8", "Half")


def test_layers_may_be_names_only_and_control_characters_raw() -> None:
    engine = parse_engine('{"Layers": ["a", "b\x1fc"]}')
    assert [layer.name for layer in engine.layers] == ["a", "b + c"]
    assert not any(layer.kind for layer in engine.layers)
    assert engine.bindings == ()


def test_layers_of_further_optimization_profiles_are_left_out() -> None:
    engine = parse_engine(engine_10(["a", "a [profile 1]", "b [profile 12]"]))
    assert [layer.name for layer in engine.layers] == ["a"]


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("", "no JSON"),
        ("[]", "no 'Layers'"),
        ('{"Layers": {}}', "dict in place of a list"),
        ('{"Layers": [3]}', "a int"),
        ('{"Layers": [{"Name": 3}]}', "'Name' is 3"),
        ('{"Layers": [{"Name": "a", "Inputs": 3}]}', "int in place of a list"),
        ('{"Layers": [{"Name": "a", "Inputs": ["x"]}]}', "a str"),
        ('{"Layers": [{"Name": "a", "Inputs": [{"Name": "x", "Dimensions": ["n"]}]}]}', "'n'"),
        ('{"Layers": [], "Bindings": [3]}', "no name"),
        ('{"Layers": [], "I/O Tensors": ["x"]}', "no object"),
    ],
)
def test_other_engine_information_is_refused(text: str, seen: str) -> None:
    with pytest.raises(TensorRTError, match=seen):
        parse_engine(text)


def test_reports_of_a_profiler_become_medians_layer_by_layer() -> None:
    runs = [[("a", time), ("a", 2 * time)] for time in (1.0, 3.0, 100.0)]
    profile = profile_of_reports(runs)
    assert [each.seconds for each in profile.times] == pytest.approx([3e-3, 6e-3])
    assert profile.count == 3


@pytest.mark.parametrize("runs", [[], [[("a", 1.0)], [("b", 1.0)]], [[("a", -1.0)]]])
def test_reports_that_do_not_agree_are_refused(runs: list[list[tuple[str, float]]]) -> None:
    with pytest.raises(TensorRTError):
        profile_of_reports(runs)


def test_autotuning_tables_are_found_in_a_log() -> None:
    fused, product = parse_autotuning(AUTOTUNING)
    assert fused.name == "conv/Conv + conv/Relu"
    assert fused.key == "0x00112233445566778899aabbccddeeff"
    assert [each.kernel for each in fused.tactics] == ["one_kernel<half, 2>", "another_kernel"]
    assert [each.seconds for each in fused.tactics] == pytest.approx([1.25e-5, 1.5e-5])
    assert fused.selected == "0xa1"
    assert (product.name, product.selected, len(product.tactics)) == ("MatMul", None, 1)
    assert parse_autotuning("nothing of the kind") == ()
