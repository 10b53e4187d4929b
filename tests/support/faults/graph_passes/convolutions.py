"""Faults in what writes convolutions as other operators."""

from __future__ import annotations

from support.faults.graph_passes.broken_pass import BrokenPass

_COMPUTED = """<ir_version: 8, opset_import: ["" : 18]>
    g (float[2, 3, 6, 7] x, float[4, 3, 3, 2] u) => (float[2, 4, 5, 6] y) {
    w = Tanh(u)  y = Conv<pads = [1, 0, 0, 0]>(x, w) }"""
_DEFORMED = """<ir_version: 9, opset_import: ["" : 19]>
    g (float[2, 2, 6, 6] x, float[3, 2, 3, 3] w, float[2, 18, 6, 6] o) => (float[2, 3, 6, 6] y) {
    y = DeformConv<kernel_shape = [3, 3], pads = [1, 1, 1, 1]>(x, w, o) }"""
_VOLUME = """<ir_version: 8, opset_import: ["" : 17]>
    g (float[2, 2, 3, 4, 4] x, float[2, 3, 3, 3, 3] w) => (float[2, 3, 6, 6, 6] y) {
    y = ConvTranspose<strides = [2, 1, 1], pads = [1, 0, 0, 0, 0, 0]>(x, w) }"""

FAULTS = (
    BrokenPass(
        "padding at the other end",
        "column-products",
        "clean.convolution.column_products",
        "dilations=of.dilations, pads=of.pads",
        "dilations=of.dilations, pads=[*of.pads[2:], *of.pads[:2]]",
        _COMPUTED,
    ),
    BrokenPass(
        "windows begin behind the padding",
        "deformed-windows",
        "clean.convolution.deformed_windows",
        "reshape(1, -1) * stride - pad",
        "reshape(1, -1) * stride + pad",
        _DEFORMED,
        "w",
    ),
    BrokenPass(
        "no plane is cropped in front",
        "transposed-volumes",
        "clean.convolution.transposed_volumes",
        '(window_numbers(node, name, 3)[0] for name in ("strides", "pads"))',
        '(window_numbers(node, name, 3)[i] for i, name in ((0, "strides"), (3, "pads")))',
        _VOLUME,
        "w",
    ),
)
