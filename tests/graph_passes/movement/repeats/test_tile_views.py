"""A Tile as an Expand between views."""

import pytest

from wpk.graph_passes.movement.repeats.tile_views import TileViews

H = '<ir_version: 8, opset_import: ["" : 18]>'


@pytest.mark.parametrize(("shape", "repeats", "ops"), [
    ("3, 4", "2, 3", ["Reshape", "Expand", "Reshape"]),
    ("3, 1, 5", "1, 4, 1", ["Reshape", "Expand", "Reshape"]),
    ("2, 3, 4, 5", "2, 3, 2, 2", ["Reshape", "Expand", "Reshape"] * 2),
    ("3, 4", "1, 1", ["Reshape", "Expand", "Reshape"]),
])  # fmt: skip
def test_a_tile_is_an_expand_between_views(prove, shape, repeats, ops):
    sizes = [int(n) * int(r) for n, r in zip(shape.split(","), repeats.split(","), strict=True)]
    count = len(sizes)
    text = f"""{H} g (float[{shape}] x) => (float[{", ".join(map(str, sizes))}] y)
        <int64[{count}] r = {{{repeats}}}> {{ y = Tile(x, r) }}"""
    assert prove(text, TileViews()).ops == ops


def test_a_free_batch_stays_in_front(prove):
    text = f"""{H} g (float[n, 4] x) => (float[n, 12] y) <int64[2] r = {{1, 3}}> {{ y = Tile(x, r) }}"""
    assert prove(text, TileViews(), batches=(1, 3)).ops == ["Reshape", "Expand", "Reshape"]


@pytest.mark.parametrize(("ports", "why"), [
    ("(float[n, 4] x) => (float[m, 4] y) <int64[2] r = {2, 1}>", "axis 0 of an unknown size"),
    ("(float[3, 4] x, int64[2] r) => (float[m, k] y)", "its shape or its repeats are not known"),
])  # fmt: skip
def test_a_tile_of_unknown_sizes_stays(refusals, ports, why):
    assert refusals(f"{H} g {ports} {{ y = Tile(x, r) }}", TileViews()) == [why]
