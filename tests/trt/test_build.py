"""Real engines from TensorRT for RTX: built without a GPU, never executed here."""

from itertools import product
from pathlib import Path
from typing import Any

import onnx
import pytest
from support.each_value import each_value
from support.networks import handwritten

from wpk.errors import TargetError, WpkError
from wpk.shape_ranges import SizeRange
from wpk.tensorrt import Binding, Request, TensorRTError, build

PRECISIONS = ["fp32", "tf32", "fp16", "bf16"]

REFUSED = {
    ("transposed_convolution", "bf16"): "deconv",
    ("squeeze_excite", "bf16"): "HardSwish",
    ("subsampled_attention", "bf16"): "HardSwish",
    ("mobilenet_v3", "bf16"): "HardSwish",
    **dict.fromkeys(product(["regions"], PRECISIONS), "ROIAlign plugin was not found"),
    **dict.fromkeys(product(["unpooled"], PRECISIONS), "outputs for MaxPool"),
    **dict.fromkeys(product(["determinants"], PRECISIONS), "Det"),
}
"""What TensorRT for RTX 1.7 cannot build, and a word of its reason."""


@pytest.mark.parametrize(("name", "precision"), each_value(handwritten.TEXTS, PRECISIONS))
def test_every_small_network_builds(
    rtx: Binding, requested: Any, name: str, precision: str
) -> None:
    request = requested(name, precision)
    reason = REFUSED.get((name, precision))
    if reason is not None:
        with pytest.raises(TensorRTError, match=reason):
            build(rtx, request)
        return
    engine = build(rtx, request)
    assert len(engine.data) > 10_000
    assert [each.name for each in engine.inputs] == [
        each.name for each in request.model.graph.input
    ]
    assert engine.profile.keys() == {each.name for each in engine.inputs if -1 in each.shape}
    nodes = {node.name for node in request.model.graph.node}
    assert {layer.node for layer in engine.layers} - {""} <= nodes


def test_the_profile_has_the_batches_asked_for(rtx: Binding, requested: Any) -> None:
    engine = build(rtx, requested("rows", batches=SizeRange(2, 4, 16)))
    assert engine.profile == {"x": ((2, 6, 33), (4, 6, 33), (16, 6, 33))}


def test_rtx_refuses_a_target_it_does_not_know(rtx: Binding, requested: Any) -> None:
    with pytest.raises(
        TargetError, match=r"builds for compute capabilities 75, 80, .* has 90"
    ) as e:
        build(rtx, requested("rows", target="h200"))
    assert "--engine wpk" in e.value.fix


def test_the_target_decides_the_engine(rtx: Binding, requested: Any) -> None:
    engines = [build(rtx, requested("rows", target=target)).data for target in ("a100", "rtx4090")]
    assert engines[0] != engines[1]


def test_a_model_that_the_parser_refuses_is_told_node_by_node(rtx: Binding, requested: Any) -> None:
    request: Request = requested("rows")
    nodes = request.model.graph.node
    nodes.append(onnx.helper.make_node("Bogus", [nodes[0].output[0]], ["b"], "mine", domain="own"))
    request.model.graph.output.append(onnx.helper.make_tensor_value_info("b", 1, None))
    request.model.opset_import.append(onnx.helper.make_opsetid("own", 1))
    with pytest.raises(TensorRTError, match=r"node 'mine' \(Bogus\)"):
        build(rtx, request)


def test_options_are_passed_on(rtx: Binding, requested: Any) -> None:
    plain = build(rtx, requested("rows"))
    other = build(
        rtx,
        requested(
            "rows",
            hardware_compatible="same-capability",
            optimization_level=5,
            workspace=64,
        ),
    )
    assert len(other.data) > 10_000
    assert plain.layers == other.layers


@pytest.mark.parametrize(
    ("option", "value"), [("timing_cache", Path("x.cache")), ("version_compatible", True)]
)
def test_what_rtx_would_silently_ignore_is_refused(
    rtx: Binding, requested: Any, option: str, value: object
) -> None:
    with pytest.raises(TensorRTError, match=f"has no --{option.replace('_', '-')}"):
        build(rtx, requested("rows", **{option: value}))


def test_progress_is_told_and_its_interrupt_arrives(rtx: Binding, requested: Any) -> None:
    seen: list[tuple[str, int, int]] = []

    def note(stage: str, done: int, total: int, left: float | None = None) -> None:
        seen.append((stage, done, total))

    build(rtx, requested("rows"), note)
    assert seen
    assert all(stage.startswith("TensorRT: ") and done <= total for stage, done, total in seen)

    def interrupt(stage: str, done: int, total: int, left: float | None = None) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build(rtx, requested("rows"), interrupt)
    assert build(rtx, requested("rows")).data  # nothing of it stays behind


def test_many_builds_one_after_another(rtx: Binding, requested: Any) -> None:
    request = requested("transposed_output")
    assert len({len(build(rtx, request).data) for _ in range(5)}) == 1
    request.model.graph.node[0].op_type = "Gemm"
    for _ in range(3):
        with pytest.raises(WpkError):
            build(rtx, request)
