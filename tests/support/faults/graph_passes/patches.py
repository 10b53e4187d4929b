"""Faults in what reads patches of images as rows, and rows of several tables at once."""

from __future__ import annotations

from support.faults.graph_passes.broken_pass import BrokenPass

_H = '<ir_version: 8, opset_import: ["" : 17]>'
_PICTURE = f"""{_H} g (float[1, 3, 10, 10] x, float[6, 3, 5, 5] w, float[6] b) => (float[1, 6, 2, 2] y) {{
    c = Conv<strides = [5, 5]>(x, w, b)  y = Sigmoid(c) }}"""
_LARGER = f"""{_H} g (float[2, 64, 3, 3] x, float[64, 3, 3, 3] w, float[3] b) => (float[2, 3, 9, 9] y) {{
    c = ConvTranspose<strides = [3, 3]>(x, w, b)  y = Sigmoid(c) }}"""
_TABLES = f"""{_H} g (float[4, 2] x, float[5, 4] t, float[7, 4] u) => (float[4, 8] y)
    <int64 c0 = {{0}}, int64 c1 = {{1}}> {{
    s = Sign(x)  k = Cast<to = 7>(s)  i = Gather<axis = 1>(k, c0)  j = Gather<axis = 1>(k, c1)
    p = Gather(t, i)  q = Gather(u, j)  r = Concat<axis = 1>(p, q)  y = Sigmoid(r) }}"""
_SHUFFLED = f"""{_H} g (float[2, 4, 4, 4] x, float[12, 4, 1, 1] w, float[12] b) => (float[2, 3, 8, 8] y) {{
    c = Conv(x, w, b)  d = DepthToSpace<blocksize = 2, mode = "CRD">(c)  y = Sigmoid(d) }}"""

FAULTS = (
    BrokenPass(
        "places and patches change their roles",
        "patch-products",
        "products.patch_products",
        "[0, *places, 1, *inside]",
        "[0, *inside, 1, *places]",
        _PICTURE.replace("10, 10", "25, 25").replace("2, 2]", "5, 5]"),
        "w b",
    ),
    BrokenPass(
        "the channels of the pixels are those of the patches",
        "patch-products",
        "products.patch_products",
        "order = (0, *range(2, 2 + axes), 1)",
        "order = (0, 1, *range(2, 2 + axes))",
        _LARGER,
        "w b",
    ),
    BrokenPass(
        "a number of the bias is one for a place",
        "patch-products",
        "products.patch_products",
        "np.tile(held, patch)",
        "np.repeat(held, patch)",
        _LARGER,
        "w b",
    ),
    BrokenPass(
        "all tables begin where the first does",
        "joined-tables",
        "movement.gathers.joined_tables",
        "np.cumsum([0, *lengths])",
        "np.cumsum([0, *lengths]) * 0",
        _TABLES,
        "t u",
    ),
    BrokenPass(
        "indices from the end count from the last row but one",
        "joined-tables",
        "movement.gathers.joined_tables",
        'numbers("rows", rows_of_each)',
        'numbers("rows", rows_of_each - 1)',
        _TABLES,
        "t u",
    ),
    BrokenPass(
        "filters are turned the other way round",
        "depth-first",
        "fold.depth_first",
        "reshape(-1, block).T",
        "reshape(block, -1).T",
        _SHUFFLED,
        "w b",
    ),
)
