"""Trilu and the indices of OneHot in the forms that kernels have."""

import numpy as np
import pytest

from wpk.graph_passes.movement.selections.triangle_mask import TriangleMask
from wpk.graph_passes.movement.selections.whole_indices import WholeIndices

H = '<ir_version: 8, opset_import: ["" : 18]>'


@pytest.mark.parametrize("upper", [0, 1])
@pytest.mark.parametrize("k", [None, -4, -1, 0, 2, 9])
def test_a_triangle_is_a_choice(prove, upper, k):
    given = "" if k is None else ", k"
    constant = "" if k is None else f"<int64 k = {{{k}}}>"
    text = f"""{H} g (float[2, 3, 5] x) => (float[2, 3, 5] y) {constant} {{
        y = Trilu<upper = {upper}>(x{given}) }}"""
    proof = prove(text, TriangleMask())
    assert proof.ops == ["Where"]
    right = (np.triu if upper else np.tril)(np.ones((3, 5)), k or 0)
    np.testing.assert_array_equal(proof.graph.nodes[0].inputs[0].values, right)


def test_a_triangle_of_booleans_is_a_conjunction(load, export):
    graph = load(f"{H} g (bool[3, 3] x) => (bool[3, 3] y) {{ y = Trilu(x) }}")
    assert TriangleMask()(graph).rewritten == 1
    assert [node.op for node in graph.nodes] == ["And"]
    export(graph)


def test_a_triangle_at_an_unknown_diagonal_stays(refusals):
    text = f"{H} g (float[3, 3] x, int64 k) => (float[3, 3] y) {{ y = Trilu(x, k) }}"
    (reason,) = refusals(text, TriangleMask())
    assert "its diagonal" in reason


def test_indices_become_whole(prove):
    text = f"""{H} g (float[3] x) => (float[3, 4] y) <float d = {{4}}, float[2] v = {{0, 1}}> {{
        y = OneHot(x, d, v) }}"""
    assert prove(text, WholeIndices()).ops == ["Cast", "OneHot"]


def test_whole_indices_stay(refusals):
    text = f"""{H} g (int32[3] x) => (float[3, 4] y) <float d = {{4}}, float[2] v = {{0, 1}}> {{
        y = OneHot(x, d, v) }}"""
    assert refusals(text, WholeIndices()) == []
