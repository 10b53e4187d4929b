"""Templates of warpgroups: what they do not take, in words."""

from dataclasses import replace
from typing import Any

import pytest
from subjects.problems import channels_last
from support.problems.network_layers import dense, resnet

from wpk.dtypes import DType, Precision
from wpk.problems import Tensor
from wpk.schedules.registry import TEMPLATE_OF
from wpk.targets.registry import find_target


def _with(problem: Any, **changes: Any) -> Any:
    return replace(problem, **changes)


CONV, DENSE = resnet(), dense()
NARROW = Tensor(DType.FP16, (250 * 196, 1, 250 * 14, 250), alignment=4)
REFUSALS: list[tuple[str, Any, str, str]] = [
    ("conv_wgmma", CONV, "a100", "no products of warpgroups"),
    ("conv_wgmma", CONV, "b200", "no products of warpgroups"),
    ("conv_wgmma", _with(CONV, groups=32), "h200", "32 groups of 8 channels"),
    ("conv_wgmma", _with(CONV, transposed=True), "h200", "transposed"),
    ("conv_wgmma", _with(CONV, x=channels_last(DType.FP32, 256, 14, 14)), "h200", "x is fp32"),
    ("conv_wgmma", _with(CONV, x=NARROW, c=250), "h200", "a stride of 500 bytes"),
    ("conv_wgmma", _with(CONV, y=channels_last(DType.INT32, 256, 14, 14)), "h200", "int32"),
    ("conv_wgmma", _with(CONV, stride=(9, 9), p=1, q=1), "h200", "a stride of 9"),
    (
        "conv_wgmma",
        _with(CONV, x=Tensor(DType.FP16, (256 * 196, 196, 14, 1))),
        "h200",
        "a stride of 196 along the reduction",
    ),
    (
        "conv_wgmma",
        _with(CONV, h=400, w=400, p=100, q=100, filter=(301, 301)),
        "h200",
        "pixels from the image's edge",
    ),
    (
        "conv_wgmma",
        _with(CONV, x=Tensor(DType.FP16, (0, 1, 256 * 14, 256))),
        "h200",
        "the same in every image",
    ),
    (
        "conv_wgmma",
        _with(CONV, x=Tensor(DType.FP16, (256 * 14, 1, 0, 256))),
        "h200",
        "the same all along h",
    ),
    ("gemm_wgmma", DENSE, "rtx4090", "no products of warpgroups"),
    (
        "gemm_wgmma",
        _with(DENSE, b_constant=False, b=Tensor(DType.BF16, (0, 0, 1536, 2))),
        "h200",
        "b has a stride of 1536 along",
    ),
    (
        "gemm_wgmma",
        _with(DENSE, a=Tensor(DType.BF16, (0, 0, 3075, 1))),
        "h200",
        "a has a stride of 6150 bytes",
    ),
    ("gemm_wgmma", _with(DENSE, a=Tensor(DType.BF16, (0, 0, 0, 1))), "h200", "broadcast along"),
    (
        "gemm_wgmma",
        _with(dense(precision=Precision.TF32), b_constant=False),
        "h200",
        "operands of tf32 products lie along",
    ),
]


@pytest.mark.parametrize(("name", "problem", "target", "words"), REFUSALS)
def test_refuses_in_words(name: str, problem: Any, target: str, words: str) -> None:
    reason = TEMPLATE_OF[name].why_not(problem, find_target(target))
    assert reason is not None
    assert words in reason
