"""Problems of squeeze and excitation."""

from typing import Any

import numpy as np

from wpk.dtypes import DType, Precision
from wpk.expression import Acc, Expression, Operand, Round, Scalar, apply, substitute
from wpk.extent import Extent
from wpk.libraries.reference import RandomCase, random_case, worst_error
from wpk.libraries.squeeze_reference import excite
from wpk.problems import Epilogue, Squeeze, Tensor, whole_runs
from wpk.schedules.squeeze import SqueezeSchedule, SqueezeTemplate

SIGMOID = apply("Sigmoid", Acc())
ACTIVATIONS: dict[str, Expression] = {
    "relu": apply("Relu", Acc()),
    "silu": apply("Mul", Acc(), SIGMOID),
    "gelu": apply("Mul", Acc(), apply("Add", apply("Erf", Acc()), Scalar(1.0))),
    "hardswish": apply(
        "Mul", Acc(), apply("Min", apply("Relu", apply("Add", Acc(), Scalar(3.0))), Scalar(6.0))
    ),
    "sigmoid": SIGMOID,
    "hardsigmoid": apply("Min", apply("Relu", apply("Add", Acc(), Scalar(0.5))), Scalar(1.0)),
    "none": Acc(),
}


def squeeze(
    c: int,
    pixels: int,
    hidden: int,
    *,
    precision: Precision = Precision.FP16,
    n: int = 1,
    k: int | None = None,
    scales: bool = True,
    activation: str = "relu",
    gate: str = "sigmoid",
    channels_last: bool = True,
    padded: bool = False,
) -> Squeeze:
    """A problem whose images lie channels last or first, with a bias behind each product."""
    dtype, k = precision.storage, c if k is None else k
    places = pixels if scales else 1
    scaled = Epilogue()
    if scales:
        image = _image(dtype, c, pixels, channels_last=channels_last, padded=padded)
        scaled = Epilogue(apply("Mul", Operand(0), Acc()), (image,))
    rounded = {"means": Round(dtype, Acc())} if dtype is not DType.FP32 else {"means": Acc()}
    values: dict[str, Any] = rounded
    return Squeeze(
        precision=precision,
        n=Extent(n),
        c=c,
        pixels=pixels,
        hidden_size=hidden,
        k=k,
        places=places,
        x=_image(dtype, c, pixels, channels_last=channels_last, padded=padded),
        down=Tensor(dtype, (whole_runs(c), 1)),
        up=Tensor(dtype, (whole_runs(hidden), 1)),
        hidden=biased(ACTIVATIONS[activation], dtype),
        gates=biased(ACTIVATIONS[gate], dtype),
        scaled=scaled,
        y=_image(dtype, k, places, channels_last=channels_last, padded=padded),
        **values,
    )


def _image(dtype: DType, c: int, pixels: int, *, channels_last: bool, padded: bool) -> Tensor:
    if not channels_last and pixels > 1:
        return Tensor(dtype, (c * pixels, pixels, 1), 0, _alignment(pixels * dtype.bytes))
    padding = whole_runs(c) - c if padded else 0
    row = c + padding
    return Tensor(dtype, (pixels * row, 1, row), padding, _alignment(row * dtype.bytes))


def _alignment(row_bytes: int) -> int:
    return next(each for each in (16, 8, 4, 2) if row_bytes % each == 0)


def biased(expression: Expression, dtype: DType) -> Epilogue:
    """An expression behind a bias of each column."""
    bias = apply("Add", Acc(), Operand(0))

    def inside(each: Expression) -> Expression:
        return bias if isinstance(each, Acc) else each

    return Epilogue(substitute(expression, inside), (Tensor(dtype, (0, 1)),))


def error_of(
    execution: Any,
    problem: Squeeze,
    schedule: SqueezeSchedule,
    template: Any = None,
    *,
    scales_itself: bool = False,
) -> float:
    """The largest error, in units of what rounding explains.

    Args:
        execution: Of the emulator.
        problem: What to compute.
        schedule: How.
        template: Where a fault is planted.
        scales_itself: Whether what is scaled is what is pooled, as in networks, in the same memory.
    """
    case = random_case(problem, 0)
    if scales_itself:
        case = _of_itself(problem, case)
    template = SqueezeTemplate() if template is None else template
    reads, output = problem.accesses()
    memory = [
        execution.memory(access.tensor, np.broadcast_to(values, access.sizes))
        for access, values in zip(reads, case.operands, strict=True)
        if access is not None
    ]
    if scales_itself:
        memory[-1] = memory[0]
    dims = {problem.n.free: problem.n.value} if problem.n.free else {}
    y = execution.run(template, problem, schedule, memory, output.sizes, dims)
    return worst_error(y, case)


def _of_itself(problem: Squeeze, case: RandomCase) -> RandomCase:
    x, down, up, *others = case.operands
    groups = others[: len(problem.hidden.operands)], others[len(problem.hidden.operands) : -1], [x]
    wide = [[each.astype(np.float64) for each in group] for group in groups]
    rows = down[:, : problem.c], up[:, : problem.hidden_size]
    factors = (each.astype(np.float64) for each in (x, *rows))
    output, allowed = excite(problem, *factors, wide)
    return RandomCase((*case.operands[:-1], x), output, allowed)
