"""Products that normalise their rows, beside those of rows as they lie: what the normalisation costs."""

from collections.abc import Callable

import pytest
from support.launches.warpgroup_steps import Step, operands
from support.problems.warpgroup_layers import matmul, normed

from wpk.device import CudaDevice, Patience, measure
from wpk.problems import Matmul, NormKind
from wpk.schedules.wgmma.tiles import WgmmaSchedule
from wpk.trial import Regime

LAYERS = {
    "ViT-B/16": (197, WgmmaSchedule(64, 128, 128, 4, early=1), 1e-6),
    "GPT-2": (128, WgmmaSchedule(64, 64, 128, 6, early=1), 1e-6),
    "32 of ViT-B/16": (6304, WgmmaSchedule(128, 128, 64, 4, early=1, persistent=132), 3e-6),
}
"""Rows, a schedule, and seconds: less than the kernel of a layer norm takes in a chain."""

pytestmark = [pytest.mark.gpu, pytest.mark.timed]


@pytest.mark.parametrize("name", LAYERS)
def test_rows_are_normalised_in_less_than_a_kernel(
    cuda: CudaDevice, name: str, record: Callable[[str, object], None]
) -> None:
    if cuda.capability != (9, 0):
        pytest.skip(f"needs a GPU of compute capability 9.0, this is {cuda.name}")
    rows, schedule, allowed = LAYERS[name]
    plain = matmul(rows, 2304, 768)
    problems: dict[str, Matmul] = {"plain": plain, "normed": normed(plain, NormKind.LAYER)}
    seconds = {}
    for kind, problem in problems.items():
        step = Step(cuda, problem, schedule, operands(problem, schedule, 0))
        seconds[kind] = measure(cuda, [step.bound()], (), Regime.WARM, Patience()).median
        step.free()
    record(f"normed products.{name}", seconds)
    assert seconds["normed"] < seconds["plain"] + allowed
