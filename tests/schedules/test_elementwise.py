"""Element-wise kernels, walked by rows and by tiles: numbers, exact copies, domains, refusals."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from wpk.dtypes import DType
from wpk.expression import Expression, Operand, Round, Scalar, apply, evaluate
from wpk.extent import Extent
from wpk.performance.bank_conflicts import shared_cost
from wpk.problems import Elementwise, Tensor
from wpk.schedules.elementwise import ElementwiseSchedule, ElementwiseTemplate
from wpk.schedules.elementwise_tiled import ElementwiseTiledTemplate, TiledSchedule
from wpk.schedules.flat_domain import flatten
from wpk.targets.registry import find_target

ROWS, TILES = ElementwiseTemplate(), ElementwiseTiledTemplate()
H200 = find_target("h200")
COPY: Expression = Operand(0)
SUM = apply("Relu", apply("Add", Operand(0), Operand(1)))


def tensor(dtype: DType, shape: Sequence[int], order: Sequence[int], padding: int = 0) -> Tensor:
    """Contiguous with the axes from outermost to innermost in ``order``."""
    strides, step = [0] * len(shape), 1
    for position, axis in enumerate(reversed(order)):
        strides[axis] = step
        step *= shape[axis] + (padding if position == 0 else 0)
    alignment = 16
    while any(s not in (0, 1) and s * dtype.bytes % alignment for s in strides):
        alignment //= 2
    return Tensor(dtype, tuple(strides), padding, max(alignment, dtype.bytes))


def drawn(dtype: DType, shape: Sequence[int], seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if dtype.is_float or dtype.is_fp8:
        return rng.standard_normal(shape).astype(dtype.numpy)
    if dtype is DType.BOOL:
        return rng.integers(0, 2, shape).astype(bool)
    limits = np.iinfo(dtype.numpy)
    return rng.integers(limits.min, limits.max, shape, dtype.numpy, endpoint=True)


def run(execution: Any, template: Any, problem: Elementwise, schedule: Any, *arrays: Any) -> Any:
    assert template.why_not(problem, H200) is None
    assert template.why_illegal(problem, schedule, H200) is None
    memory = [execution.memory(t, a) for t, a in zip(problem.inputs, arrays, strict=True)]
    free = problem.leading.free
    dims = {free: problem.leading.value // problem.leading.factor} if free else {}
    return execution.run(template, problem, schedule, memory, problem.shape, dims)


@pytest.mark.parametrize("dtype", list(DType))
@pytest.mark.parametrize("tiled", [False, True])
def test_copies_of_every_type_are_exact(dtype: DType, tiled: bool, fast_execution: Any) -> None:
    shape = (2, 33, 5, 7)
    x_tensor, y_tensor = tensor(dtype, shape, (0, 1, 2, 3)), tensor(dtype, shape, (0, 2, 3, 1), 3)
    problem = Elementwise(Extent(2, "n"), shape, COPY, (x_tensor,), y_tensor)
    x = drawn(dtype, shape)
    template: Any = TILES if tiled else ROWS
    schedule = TiledSchedule(1, 32, 128) if tiled else ElementwiseSchedule(1, 2, 64)
    y = run(fast_execution, template, problem, schedule, x)
    # The fixture reads results as float64, which int64's extremes do not survive: compare alike.
    np.testing.assert_array_equal(y, x.astype(np.float64))


def test_int64_does_not_pass_through_float(fast_execution: Any) -> None:
    flat = tensor(DType.INT64, (1, 4), (0, 1))
    x = np.array([[2**53 - 1, -(2**53) + 1, 2**24 + 1, -1]])
    problem = Elementwise(Extent(1), (1, 4), COPY, (flat,), flat)
    y = run(fast_execution, ROWS, problem, ElementwiseSchedule(2, 1, 64), x)
    np.testing.assert_array_equal(y.astype(np.int64), x)
    narrow = replace(problem, y=tensor(DType.INT32, (1, 4), (0, 1)))
    small = np.array([[2**24 + 1, -(2**24) - 1, 2**31 - 1, 0]])
    y = run(fast_execution, ROWS, narrow, ElementwiseSchedule(2, 1, 64), small)
    np.testing.assert_array_equal(y.astype(np.int64), small)


@pytest.mark.parametrize(
    "schedule",
    [
        ElementwiseSchedule(8, 4, 64),
        ElementwiseSchedule(4, 1, 128),
        ElementwiseSchedule(1, 2, 64),
    ],
)
def test_mixed_types_and_broadcasts(schedule: ElementwiseSchedule, execution: Any) -> None:
    shape = (3, 58, 4, 5)
    a = tensor(DType.FP16, shape, (0, 2, 3, 1), 6)
    b = Tensor(DType.FP32, (0, 1, 0, 0), alignment=16)
    c = tensor(DType.FP32, shape, (0, 1, 2, 3))
    expression = apply("Where", apply("Less", Operand(0), Scalar(0.0)), Operand(1), Operand(2))
    y_tensor = tensor(DType.BF16, shape, (0, 2, 3, 1), 6)
    problem = Elementwise(Extent(3, "n"), shape, expression, (a, b, c), y_tensor)
    wanted = schedule.vector * schedule.items * 3
    if wanted > 64:
        words = ROWS.why_illegal(problem, schedule, H200)
        assert str(words).startswith("a thread holds at most 64 elements of its 3 inputs (")
        return
    x, z = drawn(DType.FP16, shape, 1), drawn(DType.FP32, shape, 3)
    v = drawn(DType.FP32, (1, 58, 1, 1), 2)
    y = run(execution, ROWS, problem, schedule, x, np.broadcast_to(v, shape), z)
    expected = np.where(x < 0, v, z).astype(DType.BF16.numpy).astype(np.float64)
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize(
    "schedule", [TiledSchedule(1, 32, 128), TiledSchedule(2, 32, 256), TiledSchedule(4, 64, 256)]
)
def test_tiles_cross_with_other_operands(schedule: TiledSchedule, execution: Any) -> None:
    shape = (2, 70, 9, 11)
    a = tensor(DType.FP32, shape, (0, 1, 2, 3))
    b = tensor(DType.FP16, shape, (0, 2, 3, 1), 2)
    y_tensor = tensor(DType.FP16, shape, (0, 2, 3, 1), 2)
    problem = Elementwise(Extent(2), shape, SUM, (a, b), y_tensor)
    x, z = drawn(DType.FP32, shape, 1), drawn(DType.FP16, shape, 2)
    y = run(execution, TILES, problem, schedule, x, z)
    expected = evaluate(SUM, None, [x, z.astype(np.float32)]).astype(np.float16)
    np.testing.assert_array_equal(y, expected.astype(np.float64))


def test_one_axis_whose_extent_is_a_multiple_of_the_free_one(execution: Any) -> None:
    flat = Tensor(DType.FP16, (1,))
    problem = Elementwise(Extent(3 * 52, "n", 52), (156,), apply("Neg", COPY), (flat,), flat)
    x = drawn(DType.FP16, (156,))
    y = run(execution, ROWS, problem, ElementwiseSchedule(4, 1, 64), x)
    np.testing.assert_array_equal(y, -x.astype(np.float64))
    (launch,) = ROWS.launches(problem, ElementwiseSchedule(4, 1, 64))
    domain = flatten(problem)
    assert domain is not None
    assert domain.leading == Extent(3, "n")
    assert domain.shape == (52,)
    assert domain.inputs[0].alignment == 8, "rows of 104 bytes"
    assert launch.arguments[1].expression == "n"  # type: ignore[union-attr]


def test_a_constant_without_inputs(fast_execution: Any) -> None:
    y_tensor = tensor(DType.FP32, (2, 5), (0, 1), 3)
    problem = Elementwise(Extent(2), (2, 5), Scalar(1.5), (), y_tensor)
    y = run(fast_execution, ROWS, problem, ElementwiseSchedule(4, 1, 64))
    np.testing.assert_array_equal(y, np.full((2, 5), 1.5))


def test_casts_truncate_to_integers(fast_execution: Any) -> None:
    shape = (1, 6)
    x_tensor, y_tensor = tensor(DType.FP32, shape, (0, 1)), tensor(DType.INT8, shape, (0, 1))
    problem = Elementwise(Extent(1), shape, Round(DType.INT32, COPY), (x_tensor,), y_tensor)
    x = np.array([[1.9, -1.9, 100.5, -0.2, 3.0, 0.0]])
    y = run(fast_execution, ROWS, problem, ElementwiseSchedule(1, 1, 64), x)
    np.testing.assert_array_equal(y, [[1, -1, 100, 0, 3, 0]])


@pytest.mark.parametrize(
    ("shape", "orders", "expected"),
    [
        ((2, 3, 4, 5), ((0, 1, 2, 3), (0, 1, 2, 3)), (120,)),
        ((2, 3, 4, 5), ((0, 1, 2, 3), (0, 2, 3, 1)), (2, 20, 3)),
        ((2, 1, 4, 1), ((0, 1, 2, 3), (0, 2, 3, 1)), (8,)),
        ((1, 1, 1), ((0, 1, 2), (0, 1, 2)), (1,)),
    ],
)
def test_axes_join_where_strides_permit(
    shape: tuple[int, ...], orders: tuple[tuple[int, ...], ...], expected: tuple[int, ...]
) -> None:
    x, y = (tensor(DType.FP32, shape, order) for order in orders)
    domain = flatten(Elementwise(Extent(shape[0]), shape, COPY, (x,), y))
    assert domain is not None
    assert domain.shape == expected
    assert domain.leading == Extent(1)


def test_reading_down_a_tile_meets_every_bank() -> None:
    shape = (2, 70, 9, 11)
    for dtype in (DType.INT8, DType.FP16, DType.FP32, DType.INT64):
        x, y = tensor(dtype, shape, (0, 1, 2, 3)), tensor(dtype, shape, (0, 2, 3, 1))
        problem = Elementwise(Extent(2), shape, COPY, (x,), y)
        for tile in (32, 64):
            accesses = TILES.shared_accesses(problem, TiledSchedule(1, tile, 256))
            assert shared_cost(accesses).coefficient == 1.0
    wide = TILES.shared_accesses(problem, TiledSchedule(4, 32, 256))
    assert shared_cost(wide).coefficient > 1.0


def test_refuses_in_words() -> None:
    shape = (2, 3, 4, 5)
    same = tensor(DType.FP32, shape, (0, 1, 2, 3))
    problem = Elementwise(Extent(2), shape, COPY, (same,), same)
    assert ROWS.why_not(problem, H200) is None
    reason = "no input is contiguous along another axis than the output"
    assert TILES.why_not(problem, H200) == reason
    six = (2, 3, 2, 3, 2, 3)
    x, y = tensor(DType.FP32, six, (0, 1, 2, 3, 4, 5)), tensor(DType.FP32, six, (0, 5, 4, 3, 2, 1))
    far = Elementwise(Extent(2, "n"), six, COPY, (x,), y)
    assert "more than 4 axes remain" in str(ROWS.why_not(far, H200))
    sparse = replace(problem, y=Tensor(DType.FP32, (120, 40, 10, 2)))
    assert "not contiguous along any axis" in str(TILES.why_not(sparse, H200))
    assert "reads operand 1" in str(ROWS.why_not(replace(problem, expression=SUM), H200))
    crossing = tensor(DType.FP32, shape, (0, 2, 3, 1))
    crossed = replace(problem, inputs=(crossing,))
    words = TILES.why_illegal(crossed, TiledSchedule(4, 32, 512), H200)
    assert words == "threads divide the vectors of a tile (vector=4, tile=32, threads=512)"
    three = replace(crossed, inputs=(crossing,) * 3, expression=apply("Add", COPY, Operand(2)))
    words = TILES.why_illegal(three, TiledSchedule(1, 64, 256), H200)
    assert words == "tiles take at most 49152 bytes, which a kernel may declare (tile=64)"
