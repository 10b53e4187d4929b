"""Rows of bare products: what counts as one, and what share of the peak is told."""

from dataclasses import replace

import pytest
from rows.bare_products import Timed, judge, products_of, rows
from rows.product_peak import CASES
from subjects.bare_product import BareProduct
from subjects.problems import convolution, matmul

from wpk.extent import Extent
from wpk.problems import Matmul


def _batched(problem: Matmul, *, shares_b: bool) -> Matmul:
    """Three times the problem, with one second factor or three."""
    size = problem.m.value, problem.n, problem.k
    a = replace(problem.a, strides=(0, size[0] * size[2], *problem.a.strides[2:]))
    y = replace(problem.y, strides=(0, size[0] * size[1], *problem.y.strides[2:]))
    b = replace(
        problem.b, strides=(0, 0 if shares_b else size[1] * size[2], *problem.b.strides[2:])
    )
    return replace(problem, batch=(Extent(1), 3), a=a, b=b, y=y)


def test_a_batch_of_one_matrix_is_rows() -> None:
    problem = matmul(200, 64, 32)
    assert BareProduct.of(problem) == BareProduct(200, 64, 32)
    assert BareProduct.of(_batched(problem, shares_b=True)) == BareProduct(600, 64, 32)
    with pytest.raises(ValueError, match="differs in its batch"):
        BareProduct.of(_batched(problem, shares_b=False))


def test_a_convolution_is_the_product_of_its_patches() -> None:
    patches = convolution(16, 24, (32, 48), filter=4, stride=4, pads=0, n=2)
    product = BareProduct.of(patches)
    assert product == BareProduct(2 * 8 * 12, 24, 16 * 4 * 4)
    assert product.operations == patches.traffic().products
    with pytest.raises(ValueError, match="operations where"):
        BareProduct.of(convolution(16, 24, (5, 7)))


def test_what_the_engine_counts_is_timed() -> None:
    twice, patches = matmul(200, 64, 32), convolution(16, 24, 8, filter=2, stride=2, pads=0)
    depthwise = convolution(16, 16, (5, 7), groups=16)
    counted = products_of([twice, patches, depthwise, twice])
    assert counted == {BareProduct.of(twice): 2, BareProduct.of(patches): 1}


def test_the_share_counts_each_product_as_often_as_it_stands() -> None:
    often, once = BareProduct(100, 200, 300), BareProduct(50, 60, 70)
    timed = [Timed(often, 3, 2e-6, "cublas", False), Timed(once, 1, 1e-6, "cublaslt", True)]
    outcome = judge(timed, 1e13, {"figures": {"products": {"share": 0.25}}})
    operations = 3 * often.operations + once.operations
    assert outcome.figures["share"] == pytest.approx(operations / 7e-6 / 1e13)
    assert "4 bare products" in outcome.summary
    assert "0.25" in outcome.summary
    assert "engine" not in judge(timed, 1e13, {}).summary


def test_each_row_of_the_peak_has_one() -> None:
    assert [row.name for row in rows()] == [f"bare.{case}" for case in CASES]
