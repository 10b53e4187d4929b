"""An Einsum becomes transposes, a product and a sum with the same numbers."""

import pytest

from wpk.graph_passes.products.einsum import EinsumParts

H = '<ir_version: 10, opset_import: ["" : 20]>'
CASES = {
    "ij->ji": ("float[3, 5] a", "5, 3", ["Transpose"]),
    "ijk->ik": ("float[3, 5, 2] a", "3, 2", ["ReduceSum"]),
    "abc->": ("float[3, 5, 2] a", "", ["ReduceSum"]),
    "bij,bjk->bik": ("float[2, 3, 5] a, float[2, 5, 4] b", "2, 3, 4", ["MatMul"]),
    "bhid,bhjd->bhij": ("float[2, 3, 5, 4] a, float[2, 3, 6, 4] b", "2, 3, 5, 6", None),
    "bhwc,hkc->bhwk": ("float[2, 3, 5, 4] a, float[3, 6, 4] b", "2, 3, 5, 6", None),
    "i,i": ("float[5] a, float[5] b", "", None),
    "i,j->ij": ("float[5] a, float[4] b", "5, 4", None),
    "ij,kj->ki": ("float[5, 3] a, float[4, 3] b", "4, 5", None),
    "ijk,jl->il": ("float[2, 3, 5] a, float[3, 4] b", "2, 4", None),
    "...ij,jk->...ik": ("float[2, 3, 5, 4] a, float[4, 6] b", "2, 3, 5, 6", None),
    "i...,...i": ("float[4, 3] a, float[3, 4] b", "3", None),
    "...i->...": ("float[3, 5] a", "3", ["ReduceSum"]),
    "b...->b...": ("float[3] a", "3", ["Identity"]),
    "ii->i": ("float[3, 3] a", "3", ["Slice"]),
    "ii": ("float[3, 3] a", "", ["Slice", "ReduceSum"]),
    "...ii->...i": ("float[2, 3, 3] a", "2, 3", ["Slice"]),
    "ibi,bij->bj": ("float[3, 2, 3] a, float[2, 3, 4] b", "2, 4", None),
    "ijij->ij": ("float[3, 4, 3, 4] a", "3, 4", ["Transpose", "Slice", "Transpose", "Slice"]),
    " i j , j k ": (
        "float[2, 3] a, float[3, 4] b",
        "2, 4",
        ["Reshape", "Reshape", "MatMul", "Reshape"],
    ),
}


@pytest.mark.parametrize("equation", CASES)
def test_parts_give_the_same_numbers(prove, equation):
    inputs, shape, ops = CASES[equation]
    names = "a, b" if " b" in inputs else "a"
    result = f"float[{shape}] y" if shape else "float y"
    text = f'{H} g ({inputs}) => ({result}) {{ y = Einsum<equation = "{equation}">({names}) }}'
    proof = prove(text, EinsumParts())
    assert "Einsum" not in proof.ops
    assert ops is None or [op for op in proof.ops if op != "Reshape"] == [
        op for op in ops if op != "Reshape"
    ]


@pytest.mark.parametrize(
    ("equation", "inputs", "shape", "reason"),
    [
        ("iii->i", "float[3, 3, 3] a", "3", "a letter stands three times in a term"),
        (
            "...ij->...",
            "float[5] a",
            "5",
            "its equation has an ellipsis for axes of unknown number",
        ),
        (
            "ij->i",
            "float[N, 5] a",
            "N",
            "the shape or type of 'a' is not known, or no floating point number",
        ),
    ],
)
def test_what_no_product_says_is_refused(refusals, equation, inputs, shape, reason):
    text = f'{H} g ({inputs}) => (float[{shape}] y) {{ y = Einsum<equation = "{equation}">(a) }}'
    assert refusals(text, EinsumParts()) == [reason]
