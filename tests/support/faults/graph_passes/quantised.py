"""Faults in what writes quantised tensors, and products of them, as arithmetic."""

from __future__ import annotations

from support.faults.graph_passes.broken_pass import BrokenPass

_H = '<ir_version: 8, opset_import: ["" : 17]>'
_ROUNDED = f"""{_H} g (float[4, 8] x) => (float[4, 8] y) <float s = {{0.1}}, uint8 z = {{100}}> {{
    q = QuantizeLinear(x, s, z)  d = DequantizeLinear(q, s, z)  y = Relu(d) }}"""
_WEIGHTS = ", ".join(str(37 * n % 256) for n in range(30))
_PRODUCT = f"""{_H} g (float[4, 6] x) => (float[4, 5] y)
    <float sa = {{0.1}}, uint8 za = {{100}}, uint8[6, 5] b = {{{_WEIGHTS}}}, float sb = {{0.02}}, uint8 zb = {{128}},
    float sy = {{0.5}}, uint8 zy = {{127}}> {{
    a = QuantizeLinear(x, sa, za)  q = QLinearMatMul(a, sa, za, b, sb, zb, sy, zy)  y = DequantizeLinear(q, sy, zy) }}"""
_DYNAMIC = f"""{_H} g (float[4, 8] x) => (float[4, 8] y, uint8[4, 8] q) {{
    q, s, z = DynamicQuantizeLinear(x)  y = DequantizeLinear(q, s, z) }}"""

FAULTS = (
    BrokenPass(
        "the zero point is subtracted where it is to be added",
        "quantisation-parts",
        "clean.quantisation.quantisation_parts",
        'self._computed("Add", value, zero)',
        'self._computed("Sub", value, zero)',
        _ROUNDED,
    ),
    BrokenPass(
        "what is quantised is rounded down",
        "quantisation-parts",
        "clean.quantisation.quantisation_parts",
        'self._computed("Round", value)',
        'self._computed("Floor", value)',
        _ROUNDED,
    ),
    BrokenPass(
        "weights are restored around the zero point of the activations",
        "quantised-products",
        "clean.quantisation.quantised_products",
        "self._restored(0, 1, 2), self._restored(3, 4, 5)",
        "self._restored(0, 1, 2), self._restored(3, 4, 2)",
        _PRODUCT,
    ),
    BrokenPass(
        "the scale of a dynamic quantisation does not reach the least number",
        "dynamic-quantisation",
        "clean.quantisation.dynamic_quantisation",
        'reach = self._one("Sub", high, low)',
        'reach = self._one("Sub", high, nothing)',
        _DYNAMIC,
    ),
    BrokenPass(
        "the zero point of a dynamic quantisation is one step off",
        "dynamic-quantisation",
        "clean.quantisation.dynamic_quantisation",
        'place = self._one("Sub", nothing, self',
        'place = self._one("Sub", self._number("step", 1.0), self',
        _DYNAMIC,
    ),
)
