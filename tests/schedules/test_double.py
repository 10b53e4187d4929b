"""Kernels on fp64: held to fp64's unit beside NumPy's 80-bit numbers, which no rounding through fp32 passes."""

from collections.abc import Callable
from dataclasses import replace
from math import erf
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.faults.planter import Fault, change, plant
from support.launches.on_arrays import launch_on_arrays

from wpk.dtypes import DType, Precision
from wpk.emulator.build import compile_unit
from wpk.expression import (
    OPERATIONS,
    Acc,
    Apply,
    Expression,
    In,
    Operand,
    Round,
    Scalar,
    apply,
    cpp_type,
    evaluate,
)
from wpk.extent import Extent
from wpk.kernel_source import KernelSource
from wpk.problems import (
    Elementwise,
    Epilogue,
    Gather,
    Matmul,
    Normalisation,
    NormKind,
    Pad,
    PadMode,
    PrefixScan,
    Problem,
    Reduction,
    Tensor,
    TopIndices,
    lifted,
)
from wpk.problems.prefix_scan import ScanKind
from wpk.problems.reduction import ReduceKind
from wpk.schedules import packings
from wpk.schedules.elementwise import ElementwiseSchedule
from wpk.schedules.elementwise_tiled import TiledSchedule
from wpk.schedules.normalisation import NormalisationSchedule
from wpk.schedules.prefix_scan import PrefixScanSchedule
from wpk.schedules.reduction import ReductionSchedule
from wpk.schedules.registry import TEMPLATE_OF
from wpk.schedules.streaming import VectorSchedule
from wpk.schedules.tiles.simt import SimtSchedule
from wpk.targets.registry import find_target

Array = NDArray[Any]
H200 = find_target("h200")
FP64, U = DType.FP64, DType.FP64.unit_roundoff
IN = In(FP64, Acc())
SPECIAL = 8.0
"""Units that a function may be off: 4 ulp, see `wpk.operators.formulas`."""


def contiguous(*shape: int, dtype: DType = FP64) -> Tensor:
    """Row-major, as aligned as its rows are."""
    strides = tuple(int(np.prod(shape[axis + 1 :])) for axis in range(len(shape)))
    row = shape[-1] * dtype.bytes
    return Tensor(dtype, strides, alignment=next(a for a in (16, 8, 4, 2, 1) if row % a == 0))


def drawn(*shape: int, seed: int = 0) -> Array:
    """Numbers of which fp32 holds none."""
    return np.random.default_rng(seed).standard_normal(shape)


def run(execution: Any, template: Any, problem: Problem, schedule: Any, *arrays: Array) -> Array:
    """The kernel's result over its domain."""
    assert template.why_not(problem, H200) is None
    assert template.why_illegal(problem, schedule, H200) is None
    reads, y = problem.accesses()
    memory = [
        array if access is None else execution.memory(access.tensor, array)
        for access, array in zip(reads, arrays, strict=True)
    ]
    return np.asarray(execution.run(template, problem, schedule, memory, y.sizes))


def worst(y: Array, reference: Array, magnitude: Array | float, roundings: float) -> float:
    """The largest error in units of so many roundings of fp64, on numbers of a magnitude."""
    error = np.abs(y.astype(np.longdouble) - reference)
    size = np.abs(reference) + magnitude
    assert not np.isnan(error).any()
    return float((error / (U * roundings * size)).max())


def test_every_operation_has_the_digits_of_fp64() -> None:
    """Each function of one kernel; a constant of fp64 among them, and no detour through fp32."""
    leaves = (Operand(0), Operand(1), Scalar(0.1))
    names = [name for name in OPERATIONS if not name.startswith(("Bit", "Shift"))]
    tried = [Apply(name, leaves[: OPERATIONS[name].arity]) for name in names]
    lines = "".join(
        f"  y[{i}] = {cpp_type(In(FP64, e))}::evaluate(0.0, x);\n" for i, e in enumerate(tried)
    )
    text = (
        "#include <wpk/kernels/numbers/expression.cuh>\nWPK_KERNEL(32) wpk_all(const double* x, double* y) {\n"
        f"{lines}}}\nWPK_EXPORT(wpk_all)\n"
    )
    library = compile_unit(KernelSource("wpk_all", text), checking=False)
    for x in ([0.7308781907032909, 0.41194617571235], [2.900715723440351, 1.7]):
        given, y = np.array(x), np.zeros(len(tried))
        launch_on_arrays(library, "wpk_all", (1, 1, 1), (1, 1, 1), 0, [given, y])
        wide = [np.longdouble(each) for each in given]
        for name, expression, found in zip(names, tried, y, strict=True):
            with np.errstate(invalid="ignore"):
                exact = erf(given[0]) if name == "Erf" else evaluate(expression, None, wide)
            assert (np.isnan(found) and np.isnan(exact)) or abs(found - exact) <= (
                SPECIAL * U * max(abs(exact), U)
            ), f"{name}: {found} for {exact}"


def test_a_formula_and_a_transpose_of_it(execution: Any) -> None:
    formula = apply("Add", apply("Mul", Operand(0), Scalar(0.1)), apply("Exp", Operand(1)))
    x, z = drawn(5, 33), drawn(33, 5, seed=1)
    across = replace(contiguous(33, 5), strides=(1, 5))
    problem = Elementwise(
        Extent(5), (5, 33), In(FP64, formula), (contiguous(5, 33), across), contiguous(5, 33)
    )
    exact = evaluate(formula, None, [x.astype(np.longdouble), z.T.astype(np.longdouble)])
    plain = run(
        execution, TEMPLATE_OF["elementwise"], problem, ElementwiseSchedule(1, 2, 64), x, z.T
    )
    tiled = run(
        execution, TEMPLATE_OF["elementwise_tiled"], problem, TiledSchedule(2, 32, 256), x, z.T
    )
    for y in (plain, tiled):
        assert worst(y, exact, np.exp(z.T), SPECIAL) <= 1
    in_fp32 = (x.astype(np.float32) * np.float32(0.1) + np.exp(z.T.astype(np.float32))).astype(
        float
    )
    assert worst(in_fp32, exact, np.exp(z.T), SPECIAL) > 1e6


@pytest.mark.parametrize("dtype", [DType.FP16, DType.BF16, DType.FP32, DType.FP8_E5M2])
def test_a_cast_rounds_once(dtype: DType, fast_execution: Any) -> None:
    """Just above ties that rounding to fp32 first would reach; and what is beyond all numbers, or no number."""
    ties = 1.0 + np.arange(3) * 2.0 * dtype.unit_roundoff + dtype.unit_roundoff
    x = np.concatenate([ties, ties + 2.0**-45, ties - 2.0**-45, [1e300, -1e300, np.nan, 1e-310]])
    x = np.concatenate([x, -x])[np.newaxis]
    problem = Elementwise(
        Extent(1),
        (1, x.size),
        Operand(0),
        (contiguous(1, x.size),),
        contiguous(1, x.size, dtype=dtype),
    )
    y = run(fast_execution, TEMPLATE_OF["elementwise"], problem, ElementwiseSchedule(1, 1, 64), x)
    unit = 2.0 * dtype.unit_roundoff
    largest = dtype.largest
    with np.errstate(over="ignore"):
        right = np.where(np.abs(x) > largest, np.copysign(np.inf, x), np.rint(x / unit) * unit)
    np.testing.assert_array_equal(y, np.where(np.abs(x) < 1e-300, 0.0, right))


def test_integers_come_and_go_as_far_as_fp64_holds_them(fast_execution: Any) -> None:
    x = np.array([[2**53 - 1, -(2**53) + 1, 2**40 + 1, 7]])
    half = apply("Add", Operand(0), Scalar(0.5))
    whole = In(FP64, Round(DType.INT64, half))
    tensor = contiguous(1, 4, dtype=DType.INT64)
    problem = Elementwise(Extent(1), (1, 4), whole, (tensor,), tensor)
    y = run(fast_execution, TEMPLATE_OF["elementwise"], problem, ElementwiseSchedule(1, 1, 64), x)
    with_half = x.astype(np.float64) + 0.5
    np.testing.assert_array_equal(y, np.trunc(with_half))


REDUCED: dict[ReduceKind, Callable[..., Any]] = {
    ReduceKind.SUM: np.sum,
    ReduceKind.MEAN: np.mean,
    ReduceKind.MAX: np.max,
    ReduceKind.PROD: np.prod,
}


def reduction(kind: ReduceKind, rows: int, columns: int) -> Reduction:
    """Of the last axis of squares; the root of it."""
    square = In(FP64, apply("Mul", Operand(0), Operand(0)))
    tail = Epilogue(In(FP64, apply("Sqrt", Acc())))
    x, y = contiguous(rows, columns), contiguous(rows, 1)
    y = replace(y, strides=(1,))
    return Reduction(kind, Extent(rows), (rows,), (columns,), square, (x,), y, tail)


@pytest.mark.parametrize("kind", REDUCED)
def test_reductions(kind: ReduceKind, checking_execution: Any) -> None:
    x = drawn(3, 157)
    template, schedule = TEMPLATE_OF["reduction"], ReductionSchedule(1, 2, 64)
    y = run(checking_execution, template, reduction(kind, 3, 157), schedule, x)
    wide = x.astype(np.longdouble)
    assert worst(y, np.sqrt(REDUCED[kind](wide * wide, axis=1)), 0.0, 157.0) <= 1


def test_a_sum_that_passes_through_fp32_is_seen(fast_execution: Any) -> None:
    fault = change("reduced", "(sums[v], value)", "(sums[v], Number(float(value)))")
    template = plant(TEMPLATE_OF["reduction"], Fault("terms are rounded to fp32", fault))
    x = drawn(3, 157)
    problem = reduction(ReduceKind.SUM, 3, 157)
    y = run(fast_execution, template, problem, ReductionSchedule(1, 2, 64), x)
    wide = x.astype(np.longdouble)
    assert worst(y, np.sqrt((wide * wide).sum(1)), 0.0, 157.0) > 1


@pytest.mark.parametrize(
    ("kind", "schedule"),
    [
        (NormKind.SOFTMAX, NormalisationSchedule(1, 32, 4, 1)),
        (NormKind.LOG_SOFTMAX, NormalisationSchedule(1, 64, 1, 0)),
        (NormKind.LAYER, NormalisationSchedule(1, 64, 1, 1)),
        (NormKind.RMS, NormalisationSchedule(1, 32, 1, 0)),
    ],
)
def test_normalisations(
    kind: NormKind, schedule: NormalisationSchedule, checking_execution: Any
) -> None:
    x, tensor = drawn(3, 101) + 2.0, contiguous(3, 101)
    prologue = In(FP64, Operand(0))
    problem = Normalisation(
        kind, Extent(3), (3,), 101, 2.0**-17, prologue, (tensor,), tensor, Epilogue(IN)
    )
    y = run(checking_execution, TEMPLATE_OF["normalisation"], problem, schedule, x)
    v = x.astype(np.longdouble)
    if kind in (NormKind.SOFTMAX, NormKind.LOG_SOFTMAX):
        below = v - v.max(-1, keepdims=True)
        logarithm = below - np.log(np.exp(below).sum(-1, keepdims=True))
        exact = np.exp(logarithm) if kind is NormKind.SOFTMAX else logarithm
    else:
        d = v - v.mean(-1, keepdims=True) if kind is NormKind.LAYER else v
        exact = d / np.sqrt((d * d).mean(-1, keepdims=True) + np.longdouble(2.0**-17))
    magnitude = 0.0 if kind is NormKind.SOFTMAX else 1.0
    assert worst(y, exact, magnitude, 4 * 101**0.5) <= 1


SCHEDULES = {
    "plain": SimtSchedule(16, 32, 8, 2, 4, row_major=0, padding=0, prefetch=1),
    "row-major": SimtSchedule(32, 16, 16, 4, 2, row_major=1, padding=4, prefetch=0),
    "split": SimtSchedule(16, 16, 8, 1, 4, row_major=0, padding=4, prefetch=0, split=3),
}


def product(m: int, n: int, k: int, *, constant: bool) -> Matmul:
    """Two matrix products side by side, or one with a constant, and a bias behind."""
    batch = 1 if constant else 2
    tail = Epilogue(
        In(FP64, apply("Add", Acc(), apply("Mul", Operand(0), Scalar(0.1)))),
        (replace(contiguous(n), strides=(0, 0, 0, 1)),),
    )
    return Matmul(
        Precision.FP64,
        (Extent(1), batch),
        Extent(m),
        n,
        k,
        contiguous(1, batch, m, k),
        contiguous(1, batch, k, n),
        constant,
        contiguous(1, batch, m, n),
        tail,
    )


def multiplied(execution: Any, template: Any, problem: Matmul, schedule: SimtSchedule) -> float:
    """The worst error of a product, in units of what fp64 explains."""
    batch, m, n, k = problem.batch[1], problem.m.value, problem.n, problem.k
    a, b, bias = drawn(1, batch, m, k), drawn(1, batch, k, n, seed=1), drawn(n, seed=2)
    given: Array = b
    if problem.b_constant:
        given = packings.pack(template.packing(problem, schedule), b[0, 0], problem)
    full = np.broadcast_to(bias, (1, batch, m, n))
    y = run(execution, template, problem, schedule, a, given, full)
    exact = a.astype(np.longdouble) @ b.astype(np.longdouble) + bias * np.longdouble(0.1)
    return worst(y, exact, np.abs(a) @ np.abs(b) + np.abs(bias), 4 * (1 + k**0.5))


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("name", SCHEDULES)
def test_products(name: str, constant: bool, checking_execution: Any) -> None:
    problem = product(21, 19, 43, constant=constant)
    assert multiplied(checking_execution, TEMPLATE_OF["gemm_simt"], problem, SCHEDULES[name]) <= 1


def test_a_product_that_passes_through_fp32_is_seen(fast_execution: Any) -> None:
    fault = change("multiplied", "multiplyAdd(a[e][i]", "multiplyAdd(Value(float(a[e][i]))")
    template = plant(TEMPLATE_OF["gemm_simt"], Fault("factors are rounded to fp32", fault))
    problem = product(21, 19, 43, constant=False)
    assert multiplied(fast_execution, template, problem, SCHEDULES["plain"]) > 1


@pytest.mark.parametrize("name", ["gemm_mma", "gemm_wgmma"])
@pytest.mark.parametrize("target", ["h200", "a100", "t4"])
def test_tensor_cores_are_not_asked_for_fp64(name: str, target: str) -> None:
    reason = TEMPLATE_OF[name].why_not(product(8, 8, 8, constant=True), find_target(target))
    assert reason is not None
    assert "fp64" in reason


def test_running_sums(fast_execution: Any) -> None:
    x, tensor = drawn(3, 70), contiguous(3, 70)
    problem = PrefixScan(ScanKind.SUM, False, False, Extent(3), (3,), 70, tensor, tensor)
    schedule = PrefixScanSchedule(4, 16)
    y = run(fast_execution, TEMPLATE_OF["prefix_scan"], problem, schedule, x)
    assert worst(y, x.astype(np.longdouble).cumsum(1), np.abs(x).cumsum(1), 70**0.5) <= 1


@pytest.mark.parametrize("name", ["arg_reduction", "top_by_rank", "top_by_sorting"])
def test_an_order_that_only_fp64_has(name: str, fast_execution: Any) -> None:
    """In fp32 all numbers of a row are one."""
    x = 1.0 + np.random.default_rng(0).permuted(np.tile(np.arange(40.0), (3, 1)), axis=1) * 2.0**-50
    x[0, 7], x[1, 3], x[2, 0] = np.inf, -np.inf, np.nan
    count = 1 if name == "arg_reduction" else 5
    y = contiguous(3, count, dtype=DType.INT64)
    problem = TopIndices(True, False, Extent(3), (3,), 40, count, contiguous(3, 40), y)
    template = TEMPLATE_OF[name]
    _, columns = template.space(problem, H200)
    found = run(fast_execution, template, problem, template.schedule(columns, 0), x)
    ranked = np.where(np.isnan(x), np.inf, x)
    np.testing.assert_array_equal(found, np.argsort(-ranked, 1, kind="stable")[:, :count])


def test_elements_are_moved_as_they_are(fast_execution: Any) -> None:
    x = drawn(1, 4, 6)
    index = np.array([[3, -4, 1]])
    gather = Gather(
        Extent(1),
        4,
        Extent(3),
        6,
        contiguous(1, 4, 6),
        contiguous(1, 3, dtype=DType.INT64),
        contiguous(1, 3, 6),
    )
    y = run(fast_execution, TEMPLATE_OF["gather"], gather, VectorSchedule(2, 64), x, index)
    np.testing.assert_array_equal(y, x[:, index[0]])
    pad = Pad(
        Extent(1),
        (1, 4, 6),
        (1, 6, 7),
        (0, 1, 1),
        PadMode.CONSTANT,
        -0.1,
        contiguous(1, 4, 6),
        contiguous(1, 6, 7),
    )
    y = run(fast_execution, TEMPLATE_OF["pad"], pad, VectorSchedule(1, 64), x)
    np.testing.assert_array_equal(y, np.pad(x, ((0, 0), (1, 1), (1, 0)), constant_values=-0.1))


def test_a_constant_has_all_its_digits() -> None:
    def printed(value: float) -> Expression:
        return In(FP64, apply("Add", Operand(0), Scalar(value)))

    assert "DoubleScalar<0x3fb999999999999aull>" in cpp_type(printed(0.1))
    assert cpp_type(printed(0.1)) != cpp_type(printed(float(np.float32(0.1))))
    assert "Scalar<0x3dcccccdu>" in cpp_type(apply("Add", Operand(0), Scalar(0.1)))


def test_a_constant_beside_bytes_is_no_argument_of_fp32() -> None:
    scaled = In(FP64, apply("Mul", Operand(0), Scalar(0.1)))
    x, y = contiguous(1, 6, dtype=DType.INT8), contiguous(1, 6)
    problem = Elementwise(Extent(1), (1, 6), scaled, (x,), y)
    assert lifted(problem).problem == problem
    in_fp32 = replace(problem, expression=scaled.argument, y=replace(y, dtype=DType.FP32))
    assert lifted(in_fp32).numbers == (0.1,)
