"""Siblings of odd sizes: of the same kind, small, and legal for the schedules of the problem itself."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from subjects.problems import channels_last
from support.networks import handwritten
from support.problems import attentions
from support.problems.fused_convolutions import CONVOLUTIONS, fused_convolution

from wpk.dims import evaluate
from wpk.dtypes import DType, Precision
from wpk.extent import Extent
from wpk.lowering.model import lower_model
from wpk.problems import Convolution, Epilogue, Matmul, Problem, Tensor
from wpk.problems.odd_sizes import BATCH, ragged
from wpk.problems.resized_layout import resized
from wpk.schedules.registry import TEMPLATES
from wpk.targets.registry import find_target

H200 = find_target("h200")
SCHEDULES = 4
"""Of every template for every problem."""

MOST_BYTES = 64 << 20
FLOOR = 0.99
"""Of the schedules of templates whose problems have siblings."""

ONE = {"N": 1, "n": 1}

KINDS = ("conv", "gemm", "attention", "depthwise", "normalisation", "recurrence", "squeeze", "thin")


@cache
def _problems(precision: Precision, folder: Path) -> list[Problem]:
    """Of a precision, found once; the folder is one for all tests."""
    found = []
    for name in handwritten.TEXTS:
        lowered = lower_model(handwritten.write(name, folder), {}, precision)
        found += [operator.problem for operator in lowered.program.operators]
    found += [make(precision) for make in CONVOLUTIONS.values()]
    long = {"queries": 128, "keys": 384, "depth": 64, "precision": precision}
    found += [attentions.attention(batch=(batch, 12), **long) for batch in (1, 8)]
    found.append(fused_convolution(precision, c=2048, k=512, filter=1))
    return list(dict.fromkeys(found))


def _schedules(template: Any, problem: Problem) -> list[Any]:
    if not isinstance(problem, template.problem_type) or template.why_not(problem, H200):
        return []
    _, columns = template.space(problem, H200)
    rows = len(next(iter(columns.values())))
    drawn = np.random.default_rng(rows).choice(rows, min(SCHEDULES, rows), replace=False)
    return [template.schedule(columns, int(row)) for row in drawn]


def _legal_nowhere(template: Any, siblings: list[Problem], schedules: list[Any]) -> list[Any]:
    """Those that are legal for none."""
    for sibling in siblings:
        if schedules and template.why_not(sibling, H200) is None:
            legal = set(template.legal_among(schedules, sibling, H200))
            schedules = [each for each in schedules if each not in legal]
    return schedules


@pytest.fixture(name="folder", scope="module")
def fixture_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where networks are written."""
    return tmp_path_factory.mktemp("networks")


@pytest.mark.parametrize(
    "precision",
    [Precision.FP16, Precision.FP32, pytest.param(Precision.TF32, marks=pytest.mark.exhaustive)],
)
def test_nearly_every_schedule_is_legal_for_an_odd_sibling(
    precision: Precision, folder: Path
) -> None:
    asked, legal = Counter[str](), Counter[str]()
    for problem in _problems(precision, folder):
        siblings = list(problem.odd_siblings())
        for template in TEMPLATES:
            if schedules := _schedules(template, problem):
                asked[template.name] += len(schedules)
                nowhere = _legal_nowhere(template, siblings, schedules)
                legal[template.name] += len(schedules) - len(nowhere)
    print({name: f"{legal[name]} of {count}" for name, count in asked.items()})
    for name, count in asked.items():
        if name.startswith(KINDS):
            assert legal[name] >= FLOOR * count, f"{name}: {legal[name]} of {count}"
        else:
            assert (
                legal[name] == 0
            )  # their kinds have no siblings, and nobody takes them for checked


@pytest.mark.parametrize("precision", [Precision.FP16, Precision.FP32])
def test_siblings_are_of_the_same_kind(precision: Precision, folder: Path) -> None:
    for problem in _problems(precision, folder):
        for sibling in problem.odd_siblings():
            assert type(sibling) is type(problem)
            inputs, output = problem.accesses()
            others, other = sibling.accesses()
            for mine, its in zip((*inputs, output), (*others, other), strict=True):
                assert (mine is None) == (its is None)
                if mine is not None and its is not None:
                    _assert_same_kind(mine, its)


def _assert_same_kind(mine: Any, its: Any) -> None:
    tensor, extents, other, sizes = mine.tensor, mine.extents, its.tensor, its.extents
    assert (other.dtype, other.padding) == (tensor.dtype, tensor.padding)
    assert other.alignment == tensor.alignment
    for stride, extent, new, size in zip(
        tensor.strides, extents, other.strides, sizes, strict=True
    ):
        assert (stride == 1) == (new == 1) or extent == 1
        assert (stride == 0) == (new == 0) or extent == 1 or evaluate(extent, ONE) == 1
        assert new in (0, 1) or new * other.dtype.bytes % other.alignment == 0
        assert (isinstance(extent, int)) == (isinstance(size, int))
    free = {"N": BATCH, "n": BATCH, "batch": BATCH}
    reach = sum(
        (evaluate(size, free) - 1) * stride
        for size, stride in zip(sizes, other.strides, strict=True)
    )
    assert reach * other.dtype.bytes < MOST_BYTES


def test_sizes_are_ragged_and_the_batch_is_three() -> None:
    sibling = next(iter(fused_convolution().odd_siblings()))
    assert isinstance(sibling, Convolution)
    assert (sibling.n, sibling.p, sibling.q) == (Extent(3), 9, 7)
    assert sibling.c % 8 == sibling.k % 8 == 0  # copies of 16 bytes
    assert sibling.c // 8 % 2 == sibling.k // 8 % 2 == 1
    assert sibling.k > 64
    assert (sibling.h, sibling.w) == (9, 7)
    assert sibling.epilogue == Epilogue()
    assert sibling.x.strides == channels_last(DType.FP16, sibling.c, 9, 7).strides


def test_the_end_of_a_strided_window_stays() -> None:
    problem = CONVOLUTIONS["stride 2"](Precision.FP16)
    for sibling in problem.odd_siblings():
        assert isinstance(sibling, Convolution)
        assert sibling.h - problem.h == 2 * (sibling.p - problem.p)


def test_padding_stays_what_it_is() -> None:
    rows = Tensor(DType.FP16, (14 * 14 * 64, 1, 14 * 64, 64), 6)
    problem = replace(fused_convolution(c=58), x=rows)
    sibling = next(iter(problem.odd_siblings()))
    assert isinstance(sibling, Convolution)
    assert sibling.c % 8 == 2
    assert sibling.x.padding == 6
    assert sibling.x.strides[3] == sibling.c + 6


def test_a_free_extent_stays_free() -> None:
    rows = Tensor(DType.FP16, (0, 0, 64, 1))
    matrix = (Precision.FP16, (Extent(1), 1), Extent(8 * 11, "N", 11), 64, 64, rows)
    problem = Matmul(*matrix, Tensor(DType.FP16, (0, 0, 64, 1)), True, rows, Epilogue())
    for sibling in problem.odd_siblings():
        assert isinstance(sibling, Matmul)
        assert sibling.m.free == "N"
        assert sibling.m.value == 3 * sibling.m.factor
        assert sibling.m.factor % 2 == 1


@pytest.mark.parametrize(
    ("size", "unit", "least", "expected"),
    [
        (512, 8, 33, (40, 72, 136, 264, 504, 520)),
        (58, 8, 33, (42, 74)),
        (16, 8, 33, (24,)),
        (24, 8, 33, (40,)),
        (7, 1, 33, (9,)),
        (64, 8, 1, (8, 24, 40, 56, 72)),
    ],
)
def test_ragged_sizes(size: int, unit: int, least: int, expected: tuple[int, ...]) -> None:
    assert ragged(size, unit, least) == expected


def _dense(dtype: DType, *strides: int, padding: int = 0, alignment: int = 16) -> Tensor:
    return Tensor(dtype, strides, padding, alignment)


LAYOUTS: dict[str, tuple[Tensor, tuple[int, ...], tuple[int, ...], tuple[int, ...] | None]] = {
    "rows": (_dense(DType.FP16, 64, 1), (4, 64), (3, 24), (24, 1)),
    "columns": (_dense(DType.FP32, 1, 8), (8, 5), (12, 7), (1, 12)),
    "padding": (_dense(DType.FP16, 64, 1, padding=6), (4, 58), (3, 42), (48, 1)),
    "a part of wider rows": (_dense(DType.FP16, 96, 1), (4, 64), (3, 40), (72, 1)),
    "broadcast": (_dense(DType.FP32, 0, 1), (4, 64), (3, 33), (0, 1)),
    "one image gets a stride": (_dense(DType.FP16, 0, 64, 1), (1, 4, 64), (3, 5, 40), (200, 40, 1)),
    "alignment would be lost": (_dense(DType.FP16, 64, 1), (4, 64), (3, 33), None),
    "less alignment is promised": (
        *(_dense(DType.FP16, 66, 1, alignment=4), (4, 66), (3, 34)),
        (34, 1),
    ),
    "overlapping windows": (_dense(DType.FP32, 4, 1, alignment=4), (4, 8), (3, 9), None),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_layouts_are_resized_in_kind(name: str) -> None:
    tensor, before, after, strides = LAYOUTS[name]
    found = resized(tensor, before, after, spread=True)
    assert found == (None if strides is None else replace(tensor, strides=strides))
