"""A ReverseSequence is gathered by the places that its lengths say."""

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

from wpk.graph_passes.movement.gathers.reversed_sequences import ReversedSequences

H = '<ir_version: 8, opset_import: ["" : {opset}]>'


@pytest.mark.parametrize("opset", [12, 18])
@pytest.mark.parametrize(
    ("shape", "attributes", "batch", "ops"),
    [
        ("5, 3, 2, 4", "", "3", ["Mul", "Add", "Gather"]),
        ("5, 3", "time_axis = 0, batch_axis = 1", "3", ["Mul", "Add", "Gather"]),
        ("N, 5, 4", "time_axis = 1, batch_axis = 0", "N", ["GatherND"]),
        ("2, 5", "time_axis = 1, batch_axis = 0", "2", ["GatherND"]),
    ],
)
def test_sequences_of_every_length_are_reversed(prove, shape, attributes, batch, ops, opset):
    given = f"<{attributes}>" if attributes else ""
    text = f"""{H.format(opset=opset)} g (float[{shape}] x, int64[{batch}] n) => (float[{shape}] y) {{
        y = ReverseSequence{given}(x, n) }}"""
    proof = prove(text, ReversedSequences(), batches=(1, 3) if batch == "N" else (1,))
    assert [op for op in proof.ops if op in ops] == ops
    assert "ReverseSequence" not in proof.ops


@pytest.mark.parametrize("length", range(6))
@pytest.mark.parametrize("time", [0, 1])
def test_a_length_turns_as_many_steps(load, export, length, time):
    shape = "5, 2" if time == 0 else "2, 5"
    text = f"""{H.format(opset=18)} g (float[{shape}] x, int64[2] n) => (float[{shape}] y) {{
        y = ReverseSequence<time_axis = {time}, batch_axis = {1 - time}>(x, n) }}"""
    graph = load(text)
    ReversedSequences()(graph)
    x = np.arange(10, dtype=np.float32).reshape(5, 2)
    x[2, 1] = np.nan
    feeds = {"x": x if time == 0 else x.T, "n": np.array([length, 5])}
    (y,) = ReferenceEvaluator(export(graph)).run(None, feeds)
    right = np.stack([np.concatenate([x[:length, 0][::-1], x[length:, 0]]), x[::-1, 1]], 1)
    np.testing.assert_array_equal(y, right if time == 0 else right.T)


def test_batches_in_front_are_left_alone_where_nothing_gathers_them(refusals):
    text = f"""{H.format(opset=11)} g (float[2, 5] x, int64[2] n) => (float[2, 5] y) {{
        y = ReverseSequence<time_axis = 1, batch_axis = 0>(x, n) }}"""
    assert refusals(text, ReversedSequences()) == ["GatherND has no batches at opset 11"]


@pytest.mark.parametrize(
    ("shape", "attributes", "reason"),
    [
        ("T, 3", "", "its steps must be known"),
        ("5, N", "", "its batch is free, and stands behind the steps"),
        ("5, 2, H, W", "", "several sizes behind the batch are free"),
        ("2, T", "<time_axis = 1, batch_axis = 0>", "its steps must be known"),
    ],
)
def test_refuses_in_words(refusals, shape, attributes, reason):
    text = f"""{H.format(opset=18)} g (float[{shape}] x, int64[b] n) => (float[{shape}] y) {{
        y = ReverseSequence{attributes}(x, n) }}"""
    (found,) = refusals(text, ReversedSequences())
    assert found.endswith(reason)
