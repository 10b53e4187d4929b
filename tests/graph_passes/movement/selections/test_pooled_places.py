"""A MaxPool gives its values or their places."""

import pytest

from wpk.graph_passes.movement.selections.pooled_places import PooledPlaces

H = '<ir_version: 8, opset_import: ["" : 18]>'
POOL = "MaxPool<kernel_shape = [3, 2], pads = [1, 0, 0, 1], storage_order = 1>(x)"


def test_both_results_are_those_of_two_nodes(prove):
    text = f"{H} g (float[n, 4, 9, 7] x) => (float[n, 4, 8, 7] y, int64[n, 4, 8, 7] i) {{ y, i = {POOL} }}"
    proof = prove(text, PooledPlaces(), batches=(1, 3))
    assert proof.ops == ["MaxPool", "MaxPool"]
    places, values = proof.graph.nodes
    assert [tensor.name for tensor in values.outputs] == ["y"]
    assert [tensor.name for tensor in places.outputs][1:] == ["i"]


def test_places_that_nobody_reads_are_left_out(prove):
    text = f"{H} g (float[2, 4, 9, 7] x) => (float[2, 4, 8, 7] z) {{ y, i = {POOL} z = Neg(y) }}"
    proof = prove(text, PooledPlaces())
    assert proof.ops == ["MaxPool", "Neg"]
    assert len(proof.graph.nodes[0].outputs) == 1


@pytest.mark.parametrize(
    "text",
    [
        f"(float[2, 4, 9, 7] x) => (int64[2, 4, 8, 7] i) {{ y, i = {POOL} }}",
        f"(float[2, 4, 9, 7] x) => (float[2, 4, 8, 7] y) {{ y = {POOL} }}",
    ],
)
def test_leaves_one_result_alone(load, text):
    assert PooledPlaces()(load(f"{H} g {text}")).rewritten == 0
