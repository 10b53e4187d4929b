"""Faults in passes that go between images and sequences of their pixels."""

from __future__ import annotations

from support.faults.graph_passes.broken_pass import BrokenPass

_H = '<ir_version: 9, opset_import: ["" : 20]>'
_IMAGE = f"""{_H} g (float[2, 16, 4] x, float[4, 4] w, float[4, 4, 1, 1] f) => (float[2, 4, 4, 4] y)
    <int64[4] image = {{2, 4, 4, 4}}> {{
    p = MatMul(x, w)  t = Transpose<perm = [0, 2, 1]>(p)  r = Reshape(t, image)  y = Conv(r, f) }}"""
_ROWS = f"""{_H} g (float[2, 4, 4, 4] x, float[4, 4, 1, 1] f, float[4, 4] w) => (float[2, 16, 4] y)
    <int64[3] rows = {{2, 4, 16}}> {{
    c = Conv(x, f)  r = Reshape(c, rows)  t = Transpose<perm = [0, 2, 1]>(r)  y = MatMul(t, w) }}"""
_SCALED = f"""{_H} g (float[2, 16, 4] x, float[4, 4] w, float[4, 1] c) => (float[2, 4, 4, 4] y)
    <int64[4] image = {{2, 4, 4, 4}}> {{
    p = MatMul(x, w)  r = Reshape(p, image)  y = Mul(r, c) }}"""

FAULTS = (
    BrokenPass(
        "an image of a sequence is turned on its side",
        "image-rows",
        "movement.transposes.image_rows",
        "[0, space + 1, *range(1, space + 1)]",
        "[0, space + 1, *reversed(range(1, space + 1))]",
        _IMAGE,
        "w f",
    ),
    BrokenPass(
        "the pixels of an image follow each other down its columns",
        "image-rows",
        "movement.transposes.image_rows",
        "[0, *range(2, space + 2), 1]",
        "[0, *reversed(range(2, space + 2)), 1]",
        _ROWS,
        "w f",
    ),
    BrokenPass(
        "a constant of each line of an image is taken for one of its channels",
        "reshapes-behind",
        "movement.reshapes.reshapes_behind",
        "int(np.prod(constant.shape)) == width and width in (1, shape[-1])",
        "int(np.prod(constant.shape)) == shape[-1]",
        _SCALED,
        "w c",
    ),
)
