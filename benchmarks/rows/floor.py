"""How far ResNet-50's engine is from a floor that its operators set, whatever the plan launches.

The operators are the 56 that the network has when every convolution takes bias, residual sum and ReLU
with it: 53 convolutions, the maximum pool, the average pool and the classifier. Each costs at least a
dependent launch, and then what its bytes cost in global memory or its products on the tensor cores:

    floor = sum over operators of ( 1.2 us + max( bytes / 4.4 TB/s, operations / datasheet peak ) )

Bytes are those of input, weights, residual and output, each once, with 16 bits; the image that the
network is given, its biases and its result have 32.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rows.base import Context, Outcome, Row, microseconds
from rows.goals import Goal, as_figures
from rows.side_by_side import time_plans
from rows.tuned import Case, measure_tuned
from wpk.dtypes import Precision
from wpk.plan.plan_file import read_plan
from wpk.targets.registry import find_target

LAUNCH_SECONDS = 1.2e-6
"""Of a kernel that depends on the one before it, with early launch, on an H200."""

BYTES_A_SECOND = 4.4e12
"""What global memory of an H200 was measured to give."""

ASKED = {1: 2.1, 32: 2.2}
"""Times the floor that an engine may take, by batch."""

WHAT = "multiple of the floor"

_HALF, _WORD = 2, 4
"""Bytes of an element."""

_STAGES = ((64, 3, 56), (128, 4, 28), (256, 6, 14), (512, 3, 7))
"""Channels within a bottleneck, how many there are, and the size of their outputs."""

_EXPANSION = 4


@dataclass(frozen=True)
class Operator:
    """One of the 56, at batch 1.

    Attributes:
        name: What it is.
        constant_bytes: Of weights and bias, whatever the batch is.
        bytes: Of all else.
        operations: Two a multiply-accumulate.
    """

    name: str
    constant_bytes: int
    bytes: int
    operations: int

    def seconds(self, batch: int, peak: float) -> float:
        """Its part of the floor."""
        moved = (self.constant_bytes + batch * self.bytes) / BYTES_A_SECOND
        return LAUNCH_SECONDS + max(moved, batch * self.operations / peak)


def operators() -> list[Operator]:
    """ResNet-50's, as torchvision has it: the stride lies on the 3 x 3 convolutions."""
    return list(_operators())


def _operators() -> Iterator[Operator]:
    yield _convolution("conv 7x7", (3, 64), (224, 112), 7, image=True)
    yield Operator("maximum pool", 0, _HALF * 64 * (112**2 + 56**2), 0)
    given = 64
    for width, count, size in _STAGES:
        for block in range(count):
            # A stage halves the image, but for the first, whose image the maximum pool halved.
            before = size if block or size == _STAGES[0][-1] else 2 * size
            wide = _EXPANSION * width
            yield _convolution("conv 1x1", (given, width), (before, before), 1)
            yield _convolution("conv 3x3", (width, width), (before, size), 3)
            if not block:
                yield _convolution("shortcut", (given, wide), (before, size), 1)
            yield _convolution("conv 1x1 + residual", (width, wide), (size, size), 1, residual=True)
            given = wide
    yield Operator("average pool", 0, _HALF * given * (7**2 + 1), 0)
    classes = 1000
    constant = _HALF * given * classes + _WORD * classes
    yield Operator("classifier", constant, _HALF * given + _WORD * classes, 2 * given * classes)


def _convolution(
    name: str,
    channels: tuple[int, int],
    sizes: tuple[int, int],
    window: int,
    *,
    image: bool = False,
    residual: bool = False,
) -> Operator:
    """A convolution of square images; a 1 x 1 with a stride touches only the pixels that it uses."""
    (c, k), (before, size) = channels, sizes
    read = size if window == 1 else before
    products = k * c * window**2
    y = k * size**2
    moved = (_WORD if image else _HALF) * c * read**2 + _HALF * y * (1 + residual)
    return Operator(name, _HALF * products + _WORD * k, moved, 2 * products * size**2)


def floor_seconds(batch: int, target: str) -> float:
    """The floor of the whole network on a target.

    Raises:
        ValueError: The target has no tensor cores.
    """
    peak = find_target(target).tensor_peak(Precision.FP16)
    if peak is None:
        raise ValueError(f"{target} has no peak in fp16")
    return sum(each.seconds(batch, peak) for each in operators())


def rows() -> list[Row]:
    """One a batch."""
    claim = "time of the whole engine over the sum of its operators' floors, fp16"
    return [_row(batch, claim) for batch in ASKED]


def _row(batch: int, claim: str) -> Row:
    case = Case("resnet50", Precision.FP16, batch)
    measure = partial(measure_tuned, case, partial(_measure, batch))
    return Row(f"floor.resnet50.b{batch}", claim, measure, goals=(goal_of(batch),))


def goal_of(batch: int) -> Goal:
    """What is asked at a batch."""
    return Goal(WHAT, ASKED[batch], at_most=True)


def _measure(batch: int, path: Path, _context: Context) -> Outcome:
    (timing,) = time_plans([path])
    plan = read_plan(path).plan
    floor = floor_seconds(batch, plan.target)
    low, high = timing.band
    judged = goal_of(batch).judged(timing.median / floor, low / floor, high / floor)
    figures = {
        "engine_seconds": timing.median,
        "floor_seconds": floor,
        "launches": sum(max(1, len(step.launches)) for step in plan.steps),
        "operators": len(plan.steps),
    }
    summary = f"{microseconds(timing.median)}, floor {microseconds(floor)}: {judged}"
    return Outcome(judged.reached, summary, figures | as_figures([judged]))
