"""Rows of quantised networks: files are quantised as they say, rows judge as they say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from rows.networks import Median
from rows.quantised import OURS_FP16, QUANTISED, Compared, Proof, compared, judge, rows
from subjects.quantised import FORMS, INT8, NETWORKS, PLAIN, Network, rounded, write

from wpk.checks.limits import OutputDistance
from wpk.graph_passes import open_session, run_session


class Small(Network):
    """Two products with a Relu between them, quantised as the large ones are."""

    def model(self) -> onnx.ModelProto:
        """Like it says."""
        rng = np.random.default_rng(0)
        weights = [
            numpy_helper.from_array(rng.standard_normal((64, 64)).astype(np.float32) / 8, name)
            for name in ("v", "w")
        ]
        nodes = [
            helper.make_node("MatMul", ["x", "v"], ["a"]),
            helper.make_node("Relu", ["a"], ["b"]),
            helper.make_node("MatMul", ["b", "w"], ["y"]),
        ]
        ports = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [16, 64]) for n in ("x", "y")]
        graph = helper.make_graph(nodes, "small", ports[:1], ports[1:], weights)
        opsets = [helper.make_opsetid("", 19)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=9)

    def inputs(self, seed: int) -> dict[str, Any]:
        """Like it says."""
        return {"x": np.random.default_rng(seed).standard_normal((16, 64)).astype(np.float32)}


@pytest.mark.parametrize(
    ("symmetric", "form", "activations", "weights"),
    [
        (True, "int8", TensorProto.INT8, TensorProto.INT8),
        (False, "int8", TensorProto.UINT8, TensorProto.INT8),
        (True, "fp8", TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT8E4M3FN),
    ],
)
def test_operands_of_products_are_quantised(
    tmp_path: Path, symmetric: bool, form: str, activations: int, weights: int
) -> None:
    write(Small("small", symmetric), form, tmp_path / "q.onnx")
    model = onnx.load(tmp_path / "q.onnx")
    held = {each.name: each for each in model.graph.initializer}
    made = {node.output[0]: node for node in model.graph.node}
    products = [node for node in model.graph.node if node.op_type == "MatMul"]
    assert len(products) == 2
    for product in products:
        x, w = (made[name] for name in product.input)
        assert x.op_type == w.op_type == "DequantizeLinear"
        assert held[x.input[2]].data_type == activations
        assert not held[x.input[1]].dims
        assert held[w.input[0]].data_type == weights
        assert list(held[w.input[1]].dims) == [64]


def test_an_engine_that_leaves_quantisation_out_is_told(tmp_path: Path) -> None:
    network = Small("small", False)
    files = {form: tmp_path / f"{form}.onnx" for form in (INT8, PLAIN)}
    for form, path in files.items():
        write(network, form, path)
    feeds = [network.inputs(seed) for seed in (1000, 1001)]

    def given(form: str) -> Compared:
        session = open_session(str(files[form]))
        outputs = [{"y": run_session(session, feed)[0]} for feed in feeds]
        return compared(files[INT8], files[PLAIN], feeds, outputs)["y"]

    right = given(INT8)
    assert right.is_right
    assert right.tells
    assert not given(PLAIN).is_right


def test_scales_are_not_rounded(tmp_path: Path) -> None:
    write(Small("small", False), INT8, tmp_path / "q.onnx")
    model = onnx.load(tmp_path / "q.onnx")
    third = numpy_helper.from_array(np.array([1 / 3], np.float32), "third")
    model.graph.initializer.append(third)
    found = {each.name: numpy_helper.to_array(each) for each in rounded(model).graph.initializer}
    assert found.pop("third") == np.float32(np.float16(1 / 3)) != numpy_helper.to_array(third)
    for each in model.graph.initializer:
        if each.name in found:
            np.testing.assert_array_equal(found[each.name], numpy_helper.to_array(each))


def _distance(median: float) -> OutputDistance:
    return OutputDistance(median, 5 * median)


PROOF = Proof(10, 10, (), 4, {"imma": 8}, 3)
RIGHT = Compared(_distance(0.002), _distance(0.002), _distance(0.02))


def _judged(error: Compared = RIGHT, proof: Proof = PROOF, ours: float = 1e-4) -> Any:
    samples = {QUANTISED: [ours] * 20, OURS_FP16: [2e-4] * 20}
    return judge(samples, {"y": error}, proof)


def test_time_is_told_and_held_to_nothing() -> None:
    assert _judged().passed
    assert "2.00 times as fast" in _judged().summary
    assert "3 of 4 products" in _judged().summary
    slow = _judged(ours=4e-4)
    assert slow.passed
    assert slow.figures["speedup over our fp16"]["median"] == pytest.approx(0.5)
    assert Median(**{k: v for k, v in slow.figures["times"][QUANTISED].items() if k != "samples"})


@pytest.mark.parametrize("median", [0.02, np.nan])
def test_an_output_that_is_off_fails(median: float) -> None:
    wrong = _judged(replace(RIGHT, engine=_distance(median)))
    assert not wrong.passed
    assert "WRONG: output 'y' is off" in wrong.summary


def test_operators_decide_where_whole_outputs_tell_nothing() -> None:
    chaotic = Compared(_distance(0.03), _distance(0.03), _distance(0.03))
    told = _judged(chaotic)
    assert told.passed
    assert told.figures["whole outputs tell"] is False
    assert "as roundings make them" in told.summary
    assert not _judged(chaotic, replace(PROOF, right=9)).passed
    assert not _judged(chaotic, replace(PROOF, failed=("operators in turn: off",))).passed


def test_there_is_a_row_for_each_network_and_form() -> None:
    assert [row.name for row in rows()] == [
        *(f"quantised.{name}.plain" for name in NETWORKS),
        *(f"quantised.{name}.{form}" for name in NETWORKS for form in FORMS if form != PLAIN),
    ]
