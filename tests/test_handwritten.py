"""Small networks with the shapes that exported ones do not have, through the command line."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from support.each_value import each_value
from support.networks import handwritten

import wpk
from wpk.checks.model_check import check_outputs
from wpk.checks.witness import ModelReference
from wpk.cli.main import main
from wpk.dtypes import Precision
from wpk.engine import random_inputs
from wpk.plan.plan import Outcome

pytestmark = pytest.mark.usefixtures("warm", "as_users_compile")

SAMPLE = {
    "grouped_dilated": "fp32",
    "group_norm": "fp16",
    "asymmetric_padding": "tf32",
    "ceil_mode_pooling": "fp16",
    "average_pooling": "bf16",
    "transposed_convolution": "fp16",
    "channel_shuffle": "fp32",
    "squeeze_excite": "fp16",
    "dense_concat": "bf16",
    "channels_58": "fp16",
    "attention_with_mask": "fp32",
    "across": "fp16",
    "movement": "tf32",
    "embedding": "bf16",
    "rows": "fp32",
    "ranking": "bf16",
    "regions": "fp16",
    "unpooled": "fp16",
    "reversed": "bf16",
    "determinants": "bf16",
    "recurrent": "fp16",
    "transposed_output": "fp16",
    "vision_transformer": "fp16",
    "pre_norm": "fp16",
    "bert_with_mask": "bf16",
    "fire_and_inception": "tf32",
    "mobilenet_v3": "fp16",
    "distilbert_attention": "fp32",
    "subsampled_attention": "fp16",
    "torch_attention": "fp16",
}
"""One precision each; the other three are marked exhaustive."""

COMBINATIONS = [
    pytest.param(
        name,
        precision,
        marks=[pytest.mark.slow]
        if SAMPLE[name] == precision
        else [pytest.mark.slow, pytest.mark.exhaustive],
    )
    for name in handwritten.TEXTS
    for precision in ("fp32", "tf32", "fp16", "bf16")
]


@pytest.mark.parametrize(("name", "precision"), COMBINATIONS)
def test_hand_written_network_is_right_at_batch_1_and_3(
    tmp_path: Path, name: str, precision: str
) -> None:
    model, plan = handwritten.write(name, tmp_path), tmp_path / "network.plan"
    command = ["optimize", str(model), "-o", str(plan), "--target", "h200", "--check", "off"]
    assert main([*command, "--precision", precision]) == 0
    assert main(["verify", str(plan), str(model), "--device", "cpu", "--seeds", "1"]) == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "precision"),
    each_value(["distilbert_attention", "torch_attention"], ["fp32", "fp16"]),
)
def test_heads_of_a_free_batch_agree_with_onnx_runtime(
    tmp_path: Path, name: str, precision: str
) -> None:
    model, plan = handwritten.write(name, tmp_path), tmp_path / "network.plan"
    command = ["optimize", str(model), "-o", str(plan), "--target", "h200", "--check", "off"]
    assert main([*command, "--precision", precision]) == 0
    reference = ModelReference(model)
    with wpk.load(plan, device="cpu") as engine:
        for batch in (1, 3, 8):
            inputs = random_inputs(engine.plan, 1, {"N": batch})
            check = check_outputs(
                engine.run, reference(inputs), inputs, Precision(precision), str(batch)
            )
            assert check.outcome is Outcome.OK, check.detail


@pytest.fixture(name="unchecked", scope="module")
def fixture_unchecked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plan with the weights of seed 0, not checked."""
    folder = tmp_path_factory.mktemp("control")
    plan, model = folder / "network.plan", handwritten.write("fire_and_inception", folder)
    command = ["optimize", str(model), "-o", str(plan), "--target", "h200", "--check", "off"]
    assert main([*command, "--precision", "fp16"]) == 0
    return plan


@pytest.mark.slow
def test_weights_of_another_seed_are_noticed(tmp_path: Path, unchecked: Path) -> None:
    other = handwritten.write("fire_and_inception", tmp_path, seed=1)
    assert main(["verify", str(unchecked), str(other), "--device", "cpu", "--seeds", "1"]) == 3


@pytest.mark.slow
def test_one_disturbed_weight_tensor_is_noticed(tmp_path: Path, unchecked: Path) -> None:
    model = handwritten.model("fire_and_inception")
    tensor = max(model.graph.initializer, key=lambda each: each.ByteSize())
    weights = onnx.numpy_helper.to_array(tensor) * np.float32(1.02)
    tensor.CopyFrom(onnx.numpy_helper.from_array(weights, tensor.name))
    path = tmp_path / "disturbed.onnx"
    onnx.save(model, path)
    assert main(["verify", str(unchecked), str(path), "--device", "cpu", "--seeds", "1"]) == 3
