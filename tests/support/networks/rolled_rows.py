"""Forms of a model in words, one of which the search of the nearest form needs a pass left out for."""

from pathlib import Path

import onnx
from zoo.lowered_forms import Decisions, LoweredForms
from zoo.nearest_form import Tried, tried

EPILOGUE = "an operator computes the element-wise nodes behind it"

ROLLED = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[1, 6, 4, 8] x, float[8, 8] w) => (float[1, 6, 4, 8] y)
<int64[1] none = {0}, int64[1] cut = {2}, int64[1] all = {100}, int64[1] one = {1}, int64[1] two = {2}>
{
    s = MatMul(x, w)
    a = Slice(s, cut, all, one)  b = Slice(s, none, cut, one)  r = Concat<axis = 1>(a, b)
    c = Slice(r, cut, all, two)  d = Slice(r, none, cut, two)  q = Concat<axis = 2>(c, d)
    m = MatMul(q, w)  y = Relu(m)
}
"""
"""Rows that a roll moves, which `MOVED` makes one gather, between two products; there is an epilogue to be taken back."""

MOVED = "moved-rows"


def written(text: str, folder: Path) -> LoweredForms:
    """Forms of a model in words."""
    onnx.save(onnx.parser.parse_model(text), folder / "m.onnx")
    return LoweredForms(folder / "m.onnx")


def rolled_then(forms: LoweredForms) -> Tried:
    """The form without `MOVED`, and with an epilogue taken back."""
    without = tried(forms.lowered(Decisions(skipped=frozenset([MOVED]))))
    *_, key = (site.key for site in without.sites if site.words == EPILOGUE)
    return tried(forms.lowered(Decisions(frozenset([key]), frozenset([MOVED]))))
