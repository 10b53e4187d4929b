"""Kernels over windows, regions, matrices and steps on fp64: held to fp64's unit beside NumPy's 80-bit numbers."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.faults.planter import Fault, change, plant

from wpk.dtypes import DType, Precision
from wpk.expression import Acc, In, apply
from wpk.extent import Extent
from wpk.problems import (
    Cell,
    Determinant,
    Epilogue,
    NearestMode,
    Pooling,
    PoolKind,
    Problem,
    Recurrence,
    Resize,
    ResizeCoordinates,
    ResizeMode,
    RoiAlign,
    RoiMode,
    Tensor,
)
from wpk.schedules.determinant import DeterminantSchedule
from wpk.schedules.recurrence_simt import RecurrenceSimtSchedule
from wpk.schedules.registry import TEMPLATE_OF
from wpk.schedules.resize import ResizeSchedule
from wpk.schedules.streaming import VectorSchedule
from wpk.targets.registry import find_target

Array = NDArray[Any]
H200 = find_target("h200")
FP64, U = DType.FP64, DType.FP64.unit_roundoff
IN = In(FP64, Acc())


def contiguous(*shape: int, dtype: DType = FP64) -> Tensor:
    """Row-major, aligned to an element."""
    strides = tuple(int(np.prod(shape[axis + 1 :])) for axis in range(len(shape)))
    return Tensor(dtype, strides, alignment=dtype.bytes)


def drawn(*shape: int, seed: int = 0) -> Array:
    """Numbers of which fp32 holds none."""
    return np.random.default_rng(seed).standard_normal(shape)


def run(execution: Any, template: Any, problem: Problem, schedule: Any, *arrays: Array) -> Array:
    """The kernel's result over its domain."""
    assert problem.carries_double
    assert not [*problem.contradictions()]
    assert template.why_not(problem, H200) is None
    assert template.why_illegal(problem, schedule, H200) is None
    reads, y = problem.accesses()
    memory = [
        array if access is None else execution.memory(access.tensor, array)
        for access, array in zip(reads, arrays, strict=True)
    ]
    return np.asarray(execution.run(template, problem, schedule, memory, y.sizes))


def worst(y: Array, exact: Array, roundings: float) -> float:
    """The largest error in units of so many roundings of fp64, on numbers of about 1."""
    error = np.abs(y.astype(np.longdouble) - exact)
    assert not np.isnan(error).any()
    return float((error / (U * roundings * (1.0 + np.abs(exact)))).max())


def pooling(kind: PoolKind, *, padded: bool = False) -> Pooling:
    """Windows of 3 x 2, two apart."""
    places = kind.finds_places
    y = contiguous(2, 3, 4, 3, dtype=DType.INT64 if places else FP64)
    x, pads = contiguous(2, 3, 7, 5), (1, 1)
    sizes = {"window": (3, 2), "stride": (2, 2), "dilation": (1, 1), "pad": pads, "pad_end": pads}
    tail = Epilogue() if places else Epilogue(In(FP64, apply("Mul", Acc(), Acc())))
    extents = {"n": Extent(2), "c": 3, "h": 7, "w": 5, "p": 4, "q": 3}
    return Pooling(kind=kind, count_include_pad=padded, x=x, y=y, epilogue=tail, **extents, **sizes)


def windows(x: Array, fill: float) -> Array:
    """Of each output the elements under its window: (n, c, p, q, 3, 2)."""
    around = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=fill)
    found = np.lib.stride_tricks.sliding_window_view(around, (3, 2), axis=(2, 3))
    return np.asarray(found[:, :, ::2, ::2])


POOLED: dict[PoolKind, Callable[[Array], Array]] = {
    PoolKind.MAX: lambda x: windows(x, -np.inf).max((-2, -1)),
    PoolKind.AVERAGE: lambda x: np.nanmean(windows(x, np.nan), (-2, -1)),
}


@pytest.mark.parametrize("kind", POOLED)
def test_pools(kind: PoolKind, checking_execution: Any) -> None:
    x = drawn(2, 3, 7, 5)
    template = TEMPLATE_OF["pooling"]
    y = run(checking_execution, template, pooling(kind), VectorSchedule(1, 64), x)
    assert worst(y, POOLED[kind](x.astype(np.longdouble)) ** 2, 8.0) <= 1


def test_places_that_only_fp64_has(fast_execution: Any) -> None:
    """In fp32 all numbers are one."""
    x = 1.0 + np.random.default_rng(0).permutation(np.arange(210.0)).reshape(2, 3, 7, 5) * 2.0**-50
    template, problem = TEMPLATE_OF["pooling"], pooling(PoolKind.PLACES)
    y = run(fast_execution, template, problem, VectorSchedule(1, 64), x)
    np.testing.assert_array_equal(x.reshape(-1)[y.astype(int)], POOLED[PoolKind.MAX](x))


def resize(mode: ResizeMode, p: int = 13, q: int = 7) -> Resize:
    """Of 5 x 4 pixels to p x q."""
    sizes = {"n": Extent(1), "c": 2, "h": 5, "w": 4, "p": p, "q": q}
    x, y = contiguous(1, 2, 5, 4), contiguous(1, 2, p, q)
    coordinates, nearest = ResizeCoordinates.HALF_PIXEL, NearestMode.ROUND_PREFER_FLOOR
    return Resize(mode, coordinates, nearest, scale=(p / 5, q / 4), x=x, y=y, **sizes)


def interpolated(x: Array, p: int = 13, q: int = 7) -> Array:
    """Linearly along both axes, in 80 bits."""
    for axis, (size, scale) in ((2, (p, p / 5)), (3, (q, q / 4))):
        wide = (np.arange(size, dtype=np.longdouble) + 0.5) / np.longdouble(scale) - 0.5
        place = np.clip(wide, 0, x.shape[axis] - 1)
        low = np.minimum(place.astype(int), x.shape[axis] - 2)
        weight = (place - low).reshape([-1 if a == axis else 1 for a in range(4)])
        x = np.take(x, low, axis) * (1 - weight) + np.take(x, low + 1, axis) * weight
    return x


def test_samples_between_pixels(checking_execution: Any) -> None:
    x, template = drawn(1, 2, 5, 4), TEMPLATE_OF["resize"]
    y = run(checking_execution, template, resize(ResizeMode.LINEAR), ResizeSchedule(1, 64), x)
    assert worst(y, interpolated(x.astype(np.longdouble)), 64.0) <= 1
    y = run(checking_execution, template, resize(ResizeMode.NEAREST), ResizeSchedule(1, 64), x)
    assert np.isin(y, x).all()


@pytest.mark.parametrize("size", [(13, 7), (15, 8), (20, 16)])
def test_samples_that_a_tile_shares(size: tuple[int, int], checking_execution: Any) -> None:
    x, problem = drawn(1, 2, 5, 4), resize(ResizeMode.LINEAR, *size)
    schedule = ResizeSchedule(1, 64, pixels=2, rows=3)
    y = run(checking_execution, TEMPLATE_OF["resize"], problem, schedule, x)
    assert worst(y, interpolated(x.astype(np.longdouble), *size), 64.0) <= 1


def region(mode: RoiMode) -> RoiAlign:
    """One region of 2 x 2 windows, a sample each, on pixels' centres."""
    sizes = {"regions": Extent(1), "images": 1, "c": 2, "h": 5, "w": 4, "p": 2, "q": 2}
    tensors = {"x": contiguous(1, 2, 5, 4), "rois": contiguous(1, 4), "y": contiguous(1, 2, 2, 2)}
    image = contiguous(1, dtype=DType.INT64)
    return RoiAlign(mode, False, 1, 1.0, image=image, epilogue=Epilogue(IN), **sizes, **tensors)


def test_a_region(checking_execution: Any) -> None:
    x, sides = drawn(1, 2, 5, 4), np.array([[0.3, 0.6, 2.7, 3.8]])
    given = (x, sides, np.zeros(1, np.int64))
    y = run(
        checking_execution,
        TEMPLATE_OF["roi_align"],
        region(RoiMode.AVERAGE),
        VectorSchedule(1, 64),
        *given,
    )
    x0, y0, x1, y1 = sides[0].astype(np.longdouble)
    exact = x.astype(np.longdouble)
    for axis, (low, high) in ((2, (y0, y1)), (3, (x0, x1))):
        place = low + (high - low) * (np.arange(2) + np.longdouble(0.5)) / 2
        before = place.astype(int)
        weight = (place - before).reshape([-1 if a == axis else 1 for a in range(4)])
        exact = (
            np.take(exact, before, axis) * (1 - weight) + np.take(exact, before + 1, axis) * weight
        )
    assert worst(y, exact, 32.0) <= 1


def test_determinants(checking_execution: Any) -> None:
    x = drawn(3, 9, 9)
    problem = Determinant(Extent(3), (3,), 9, contiguous(3, 9, 9), contiguous(3))
    template = TEMPLATE_OF["determinant"]
    y = run(checking_execution, template, problem, DeterminantSchedule(8, 4), x)
    exact = np.array([cofactors(each.astype(np.longdouble)) for each in x])
    assert worst(y, exact, 4000.0) <= 1
    large = replace(problem, size=90, x=contiguous(3, 90, 90))
    assert "bytes of shared memory" in str(template.why_not(large, H200))
    assert template.why_not(replace(large, x=contiguous(3, 90, 90, dtype=DType.FP32)), H200) is None


def cofactors(matrix: Array) -> Any:
    """The determinant by elimination in 80 bits."""
    matrix, found = matrix.copy(), np.longdouble(1)
    for step in range(len(matrix)):
        pivot = step + int(np.abs(matrix[step:, step]).argmax())
        if pivot != step:
            matrix[[step, pivot]], found = matrix[[pivot, step]], -found
        found *= matrix[step, step]
        below = matrix[step + 1 :, step : step + 1] / matrix[step, step]
        matrix[step + 1 :] -= below * matrix[step]
    return found


def recurrence(cell: Cell, gates: int) -> Recurrence:
    """Three steps of two sequences, five units, with a bias and the last states behind."""
    functions = tuple(In(FP64, apply(name, Acc())) for name in ("Sigmoid", "Tanh", "Tanh"))
    activations = {Cell.LSTM: functions, Cell.GRU: functions[:2], Cell.RNN: functions[1:2]}[cell]
    slots = 3 if cell is Cell.LSTM else 2
    return Recurrence(
        cell=cell,
        precision=Precision.FP64,
        batch=Extent(2),
        steps=3,
        hidden=5,
        reverse=False,
        linear_before_reset=False,
        clip=float("inf"),
        activations=activations,
        slots=slots,
        p=contiguous(2, 3, gates * 5),
        r=contiguous(gates * 5, 5),
        bias=contiguous(2 * gates * 5),
        lengths=None,
        h0=None,
        c0=None,
        peepholes=None,
        y=contiguous(2, 3 + slots - 1, 5),
    )


def sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


def lstm(x: Array, r: Array, b: Array, h: Array, c: Array) -> tuple[Array, Array]:
    i, o, f, g = np.split(x + h @ r.T + b[:20] + b[20:], 4, axis=1)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def gru(x: Array, r: Array, b: Array, h: Array, c: Array) -> tuple[Array, Array]:
    z, reset = np.split(sigmoid((x + h @ r.T + b[:15] + b[15:])[:, :10]), 2, axis=1)
    fresh = np.tanh(x[:, 10:] + (reset * h) @ r[10:].T + b[10:15] + b[25:])
    return (1 - z) * fresh + z * h, c


def rnn(x: Array, r: Array, b: Array, h: Array, c: Array) -> tuple[Array, Array]:
    return np.tanh(x + h @ r.T + b[:5] + b[5:]), c


CELLS = {Cell.LSTM: (4, lstm), Cell.GRU: (3, gru), Cell.RNN: (1, rnn)}


def stepped(execution: Any, cell: Cell, template: Any) -> float:
    """The worst error of a recurrence, in units of what fp64 explains."""
    gates, step = CELLS[cell]
    p, r, b = drawn(2, 3, gates * 5), drawn(gates * 5, 5, seed=1), drawn(gates * 10, seed=2)
    y = run(execution, template, recurrence(cell, gates), RecurrenceSimtSchedule(4, 2), p, r, b)
    h = c = np.zeros((2, 5), np.longdouble)
    wide = [each.astype(np.longdouble) for each in (p, r, b)]
    found = []
    for number in range(3):
        h, c = step(wide[0][:, number], wide[1], wide[2], h, c)
        found.append(h)
    found += [h, *([c] if cell is Cell.LSTM else [])]
    return worst(y, np.stack(found, 1), 200.0)


@pytest.mark.parametrize("cell", CELLS)
def test_recurrences(cell: Cell, checking_execution: Any) -> None:
    assert stepped(checking_execution, cell, TEMPLATE_OF["recurrence_simt"]) <= 1


def test_recurrences_on_tensor_cores_are_not_asked_for_fp64() -> None:
    reason = TEMPLATE_OF["recurrence_mma"].why_not(recurrence(Cell.LSTM, 4), H200)
    assert reason == "R is fp64; tensor cores multiply 16 bits here"


def test_a_recurrence_says_the_precision_of_its_activations() -> None:
    in_fp32 = replace(recurrence(Cell.RNN, 1), activations=(apply("Tanh", Acc()),))
    assert [field for field, _ in in_fp32.contradictions()] == ["precision"]


FAULTS = {
    "pooling": (
        "pooled_element",
        "toNumber<Number>(values[i][v])",
        "float(toNumber<Number>(values[i][v]))",
    ),
    "resize": ("between_pixels", "inside - ", "float(inside) - "),
    "recurrence_simt": ("state_multiplied", "weights[i] *", "float(weights[i]) *"),
}


def test_a_pool_that_passes_through_fp32_is_seen(fast_execution: Any) -> None:
    x, template = drawn(2, 3, 7, 5), faulty("pooling")
    y = run(fast_execution, template, pooling(PoolKind.AVERAGE), VectorSchedule(1, 64), x)
    assert worst(y, POOLED[PoolKind.AVERAGE](x.astype(np.longdouble)) ** 2, 8.0) > 1


def test_a_weight_that_passes_through_fp32_is_seen(fast_execution: Any) -> None:
    x, template = drawn(1, 2, 5, 4), faulty("resize")
    y = run(fast_execution, template, resize(ResizeMode.LINEAR), ResizeSchedule(1, 64), x)
    assert worst(y, interpolated(x.astype(np.longdouble)), 64.0) > 1


def test_a_step_that_passes_through_fp32_is_seen(fast_execution: Any) -> None:
    assert stepped(fast_execution, Cell.RNN, faulty("recurrence_simt")) > 1


def faulty(name: str) -> Any:
    """A template one of whose numbers is rounded to fp32 on its way."""
    return plant(TEMPLATE_OF[name], Fault("a number is rounded to fp32", change(*FAULTS[name])))
