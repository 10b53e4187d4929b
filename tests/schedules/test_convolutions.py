"""Both convolution templates: numbers on the emulator at odd shapes."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from subjects import problems
from subjects.problems import channels_first, channels_last

from wpk.dtypes import DType, Precision
from wpk.expression import Acc, Expression, Operand, Scalar, apply
from wpk.extent import Extent
from wpk.problems import Convolution, Epilogue, Tensor
from wpk.schedules.conv_mma import ConvMmaTemplate
from wpk.schedules.conv_simt import ConvSimtTemplate
from wpk.schedules.tiles.mma import MmaSchedule
from wpk.schedules.tiles.simt import SimtSchedule

MMA, SIMT = ConvMmaTemplate(), ConvSimtTemplate()
SCHEDULE = MmaSchedule(block_m=64, block_n=32, block_k=32, warps_m=2, warps_n=1, stages=3)
SIMT_SCHEDULE = SimtSchedule(
    block_m=32, block_n=32, block_k=8, thread_m=4, thread_n=4, row_major=0, padding=4, prefetch=1
)
GELU: Expression = apply(
    "Mul",
    apply("Mul", Acc(), Scalar(0.5)),
    apply("Add", apply("Erf", apply("Mul", Acc(), Scalar(0.7071067811865476))), Scalar(1.0)),
)

EACH = pytest.mark.parametrize(("template", "schedule"), [(MMA, SCHEDULE), (SIMT, SIMT_SCHEDULE)])


def _slow(value: Any) -> Any:
    return pytest.param(value, marks=pytest.mark.slow)


def convolution(
    c: int = 16, k: int = 32, size: tuple[int, int] = (9, 7), **given: Any
) -> Convolution:
    """Three images, channels last throughout."""
    return problems.convolution(c, k, size, **{"n": 3, "pads": 1, **given})


CASES: dict[str, dict[str, Any]] = {
    "3x3": {},
    "58 channels, padded": {"c": 58, "k": 58, "padding": (6, 6)},
    "58 channels, unpadded": {"c": 58, "k": 58},
    "odd channels": {"c": 5, "k": 7},
    "1x1": {"filter": (1, 1), "pads": (0, 0, 0, 0), "c": 24, "k": 40},
    "stride 2": {"stride": (2, 2), "size": (11, 8)},
    "dilated": {"dilation": (2, 3), "pads": (2, 3, 2, 3), "size": (8, 11)},
    "asymmetric": {"pads": (0, 2, 1, 0), "filter": (3, 2)},
    "grouped": {"groups": 4, "c": 32, "k": 64},
    "grouped by few": {"groups": 3, "c": 6, "k": 9},
    "transposed": {"transposed": True, "stride": (2, 2), "pads": (1, 1, 0, 0)},
    "transposed, grouped": {"transposed": True, "groups": 2, "stride": (2, 1), "dilation": (1, 2)},
    "one-dimensional": {"size": (1, 33), "filter": (1, 5), "pads": (0, 2, 0, 2)},
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(
    "precision", [Precision.FP16, Precision.FP32, _slow(Precision.BF16), _slow(Precision.TF32)]
)
def test_tensor_cores_agree_with_float64(
    case: str, precision: Precision, fast_execution: Any, check_convolution: Callable[..., None]
) -> None:
    problem = convolution(precision=precision, **CASES[case])
    schedule = replace(SCHEDULE, block_k=64 // precision.storage.bytes)
    check_convolution(fast_execution, MMA, problem, schedule)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("precision", [Precision.FP32, _slow(Precision.FP16)])
def test_ordinary_cores_agree_with_float64(
    case: str, precision: Precision, fast_execution: Any, check_convolution: Callable[..., None]
) -> None:
    problem = convolution(precision=precision, **CASES[case])
    row_major = int(precision is Precision.FP16)
    schedule = replace(SIMT_SCHEDULE, row_major=row_major, prefetch=1 - row_major)
    check_convolution(fast_execution, SIMT, problem, schedule)


@pytest.mark.parametrize("case", CASES)
@EACH
def test_integers_are_exact_under_every_check(
    case: str,
    template: Any,
    schedule: Any,
    checking_execution: Any,
    check_convolution: Callable[..., None],
) -> None:
    problem = convolution(**{**CASES[case], "size": (5, 6), "n": 2})
    y = channels_last(DType.FP32, problem.k, problem.p, problem.q, problem.y.padding)
    check_convolution(checking_execution, template, replace(problem, y=y), schedule, integers=True)


MODEL_INPUTS = {
    "the model's own layout and type": Precision.FP16,
    "strict": Precision.FP32,
    "tf32": Precision.TF32,
}


@pytest.mark.parametrize("precision", MODEL_INPUTS.values(), ids=MODEL_INPUTS)
def test_the_first_convolution_reads_channels_first_fp32(
    precision: Precision, checking_execution: Any, check_convolution: Callable[..., None]
) -> None:
    problem = convolution(
        c=3,
        k=24,
        size=(17, 13),
        filter=(7, 7),
        stride=(2, 2),
        pads=(3, 3, 3, 3),
        precision=precision,
    )
    problem = replace(problem, x=channels_first(DType.FP32, 3, 17, 13))
    schedule = replace(SCHEDULE, block_k=64 // precision.storage.bytes)
    check_convolution(checking_execution, MMA, problem, schedule)
    if precision is Precision.FP32:
        check_convolution(checking_execution, SIMT, problem, SIMT_SCHEDULE)


@EACH
def test_the_last_convolution_writes_channels_first_fp32(
    template: Any,
    schedule: Any,
    checking_execution: Any,
    check_convolution: Callable[..., None],
) -> None:
    problem = convolution(k=10)
    problem = replace(problem, y=channels_first(DType.FP32, 10, problem.p, problem.q))
    check_convolution(checking_execution, template, problem, schedule)


@EACH
@pytest.mark.parametrize("batch", [1, 4])
def test_the_batch_is_decided_at_run_time(
    batch: int,
    template: Any,
    schedule: Any,
    fast_execution: Any,
    check_convolution: Callable[..., None],
) -> None:
    problem = replace(convolution(), n=Extent(2, "n"))
    check_convolution(fast_execution, template, problem, schedule, batch=batch)


BIAS = apply("Add", Acc(), Operand(0))
TAILS: dict[str, Expression] = {
    "bias, residual, relu": apply("Relu", apply("Add", BIAS, Operand(1))),
    "bias, clip": apply("Min", apply("Max", BIAS, Scalar(0.0)), Scalar(6.0)),
    "bias, sigmoid": apply("Sigmoid", BIAS),
    "gelu": GELU,
    "scalar from memory": apply("Mul", BIAS, Operand(2)),
}


@EACH
@pytest.mark.parametrize("tail", TAILS)
@pytest.mark.parametrize("padding", [0, 6])
def test_epilogues_and_zero_padding(
    tail: str,
    padding: int,
    template: Any,
    schedule: Any,
    checking_execution: Any,
    check_convolution: Callable[..., None],
) -> None:
    problem = convolution(k=58, n=2, size=(6, 5), padding=(0, padding))
    residual = channels_last(DType.FP16, 58, problem.p, problem.q, padding)
    bias = Tensor(DType.FP32, (0, 1, 0, 0))
    scalar = Tensor(DType.FP32, (0, 0, 0, 0), alignment=4)
    epilogue = Epilogue(TAILS[tail], (bias, residual, scalar))
    check_convolution(checking_execution, template, replace(problem, epilogue=epilogue), schedule)


def test_a_residual_of_other_layout_and_type(
    checking_execution: Any, check_convolution: Callable[..., None]
) -> None:
    problem = convolution()
    residual = channels_first(DType.FP32, problem.k, problem.p, problem.q)
    tail = apply("Add", Acc(), Operand(0))
    problem = replace(problem, epilogue=Epilogue(tail, (residual,)))
    check_convolution(checking_execution, MMA, problem, SCHEDULE)


@pytest.mark.parametrize(("c", "padding"), [(16, 0), (6, 2)])
def test_a_wider_input_is_converted_on_the_way(
    c: int, padding: int, checking_execution: Any, check_convolution: Callable[..., None]
) -> None:
    problem = convolution(c=c)
    problem = replace(problem, x=channels_last(DType.FP32, c, 9, 7, padding))
    check_convolution(checking_execution, MMA, problem, SCHEDULE)


@pytest.mark.parametrize("precision", [Precision.FP32, Precision.TF32])
def test_a_narrower_input_is_gathered_in_whole_groups(
    precision: Precision, checking_execution: Any, check_convolution: Callable[..., None]
) -> None:
    problem = convolution(precision=precision)
    problem = replace(problem, x=channels_last(DType.FP16, 16, 9, 7))
    check_convolution(checking_execution, MMA, problem, replace(SCHEDULE, block_k=16))
