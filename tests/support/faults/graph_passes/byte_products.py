"""Faults in what makes products of bytes of quantised tensors."""

from __future__ import annotations

from support.faults.graph_passes.broken_pass import BrokenPass

_H = '<ir_version: 8, opset_import: ["" : 17]>'
_SCALES = """float s = {0.02}, int8 z = {7}, float t = {0.01}, int8 none = {0}, float v = {0.05}"""
_PRODUCT = f"""{_H} g (float[3, 6] x) => (float[3, 4] y) <{_SCALES}, float[4] each = {{0.01, 0.02, 0.005, 0.03}},
    int8[4] nones = {{0, 0, 0, 0}}, int8[6, 4] w = {{
    5, -3, 90, 17, 44, 81, -128, 127, 6, 7, -80, 91, 1, 23, 45, -67, 89, -10, 11, 12, -13, 14, 15, 16}}> {{
    q = QuantizeLinear (x, s, z)  a = DequantizeLinear (q, s, z)
    b = DequantizeLinear <axis = 1> (w, each, nones)  y = MatMul (a, b) }}"""
_PADDED = f"""{_H} g (float[1, 2, 5, 5] x) => (float[1, 1, 5, 5] y) <{_SCALES}, int8[1, 2, 3, 3] w = {{
    5, -3, 90, 17, 44, 81, -128, 127, 6, 7, -80, 91, 1, 23, 45, -67, 89, -10}}> {{
    q = QuantizeLinear (x, v, z)  a = DequantizeLinear (q, v, z)
    b = DequantizeLinear (w, t, none)  y = Conv <pads = [1, 1, 1, 1]> (a, b) }}"""
_MOVED = f"""{_H} g (float[3, 8] x) => (float[8, 3] y) <{_SCALES}> {{
    q = QuantizeLinear (x, s, z)  a = DequantizeLinear (q, s, z)  m = Transpose <perm = [1, 0]> (a)
    p = QuantizeLinear (m, t, z)  y = DequantizeLinear (p, t, z) }}"""
FAULTS = (
    BrokenPass(
        "the scales of the weights are forgotten",
        "byte-products",
        "clean.quantisation.byte_products",
        "self._per_channel(x.scale * other.scale)",
        "self._per_channel(x.scale * np.ones_like(other.scale))",
        _PRODUCT,
    ),
    BrokenPass(
        "the zero point is taken off with the wrong sign",
        "byte-products",
        "clean.quantisation.byte_products",
        "-x.zero * self._sums(other.distance)",
        "x.zero * self._sums(other.distance)",
        _PRODUCT,
    ),
    BrokenPass(
        "what is padded with zeros has a zero point",
        "byte-products",
        "clean.quantisation.byte_products",
        'if node.op == "Conv" and x.zero and pads(node)',
        'if node.op == "Conv" and not x.zero and pads(node)',
        _PADDED,
    ),
    BrokenPass(
        "any zero point is taken for the least number",
        "unsigned-bytes",
        "clean.quantisation.unsigned_bytes",
        "_LEAST = -128",
        "_LEAST = 7",
        _PRODUCT,
    ),
    BrokenPass(
        "what is quantised anew keeps its old scale",
        "idle-quantisation",
        "movement.chains.idle_quantisation",
        "_numbers(restored) != _numbers(node)",
        "_numbers(node) is None",
        _MOVED,
    ),
)
