"""Products with a residual at large batches, in fp16: what part of global memory's bandwidth they reach.

A network is a chain of such products, each of which adds the result of the one in front (shortcut_chain.py). Of each
side, whose residual tensor copies bring or the epilogue reads from global memory, the schedules that the models like
best are compiled and timed in turns, as CUDA graphs of the chain.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
from subjects.shortcut_chain import PRODUCTS, ShortcutChain, Sizes

from rows.base import Context, Outcome, Row, RowError, microseconds
from rows.networks import Median
from rows.side_by_side import time_starts
from wpk.backends import open_gpu
from wpk.build import CompilePool, KernelCache
from wpk.device import CudaDevice
from wpk.execution import KernelImage
from wpk.problems import Convolution
from wpk.schedules import Schedule
from wpk.schedules.registry import TEMPLATE_OF
from wpk.search.models.load_costs import Template
from wpk.search.models.shortlist import estimates
from wpk.targets import Target, target_of_gpu

BROUGHT, READ = "tensor copies", "the epilogue"
"""Who reads the residual."""

OF_A_KIND = 4
"""Schedules of a side that are timed, of each kind: a block a tile, persistent blocks, and those in turns."""

_ROWS = 64  # that are held against float64
_MOST_ERROR = 2e-2

SIZES = {
    "resnet50.64": Sizes(32, 56, 64, 256),
    "resnet50.128": Sizes(32, 28, 128, 512),
    "resnet50.256": Sizes(32, 14, 256, 1024),
    "bert.768": Sizes(0, 4096, 768, 768),
    "bert.3072": Sizes(0, 4096, 3072, 768),
    "swin.384": Sizes(0, 100352, 384, 96),
}


@dataclass(frozen=True)
class Timed:
    """A schedule: the models' seconds of a product, those measured, and the largest error."""

    schedule: str
    estimate: float
    time: Median
    error: float


def rows() -> list[Row]:
    """One of each size."""
    claim = "a residual that tensor copies bring, beside one that the epilogue reads, in fp16"
    return [Row(f"shortcut.{name}", claim, partial(measure, each)) for name, each in SIZES.items()]


def measure(sizes: Sizes, context: Context) -> Outcome:
    """Compile and time the schedules of both sides on this machine's GPU."""
    problem = sizes.problem()
    template = TEMPLATE_OF["conv_wgmma" if isinstance(problem, Convolution) else "gemm_wgmma"]
    with open_gpu() as device:
        target = target_of_gpu(device.facts.name, device.facts.capability)
        asked = candidates(sizes, template, target)
        chain = ShortcutChain(device, sizes)
        with CompilePool(target.arch, cache=KernelCache(context.store / "kernels")) as pool:
            sources = [template.instantiate(problem, each)[0] for each in asked]
            for done in [each.result() for each in [pool.submit(source) for source in sources]]:
                if done.kernel is None:
                    raise RowError(str(done.error))
                device.load(KernelImage(done.source.digest, done.source, done.kernel.cubin))
        found = _timed(device, chain, template, asked)
    return judge(sizes, found, target.global_bandwidth)


def candidates(sizes: Sizes, template: Template, target: Target) -> dict[Schedule, float]:
    """Return the schedules that are timed, with the models' seconds: of each side and kind those that these like best."""
    problem = sizes.problem()
    _, columns = template.space(problem, target)
    seconds = estimates(problem, template, target, columns)
    kinds = 3 * (columns["residual"] > 0) + (columns["persistent"] > 0) + columns["pingpong"]
    chosen = {}
    for kind in np.unique(kinds):
        of_kind = np.flatnonzero(kinds == kind)
        for row in of_kind[np.argsort(seconds[of_kind], kind="stable")][:OF_A_KIND]:
            chosen[template.schedule(columns, int(row))] = float(seconds[row])
    return chosen


def judge(sizes: Sizes, found: dict[str, list[Timed]], ceiling: float) -> Outcome:
    """Whether all are right, and the fastest of each side.

    Args:
        sizes: What was computed.
        found: By side.
        ceiling: Bytes a second of the GPU's memory, as its data sheet says.
    """
    best = {
        side: min(each, key=lambda one: one.time.median_seconds) for side, each in found.items()
    }
    wrong = [
        one.schedule for each in found.values() for one in each if not one.error <= _MOST_ERROR
    ]
    shares = {s: sizes.bytes / one.time.median_seconds / ceiling for s, one in best.items()}
    told = ", ".join(
        f"{side} {microseconds(one.time.median_seconds)} ({shares[side]:.0%})"
        for side, one in best.items()
    )
    speedup = best[BROUGHT].time.speedup_over(best[READ].time)
    summary = f"a product, residual by {told} of {ceiling / 1e12:.2f} TB/s; {speedup.median:.2f} times as fast"
    if wrong:
        summary += f"; WRONG: {wrong}"
    figures: dict[str, Any] = {
        "bytes": sizes.bytes,
        "share_of_bandwidth": shares,
        "speedup": asdict(speedup),
        "schedules": {side: [asdict(one) for one in each] for side, each in found.items()},
    }
    return Outcome(not wrong, summary, figures)


def _timed(
    device: CudaDevice, chain: ShortcutChain, template: Template, asked: dict[Schedule, float]
) -> dict[str, list[Timed]]:
    problem = chain.sizes.problem()
    starts, errors = {}, {}
    for schedule in asked:
        packing = template.packing(problem, schedule)
        assert packing is not None, "the matrix is constant"
        launches = chain.launches(packing, template.launches(problem, schedule))
        starts[str(schedule)] = device.capture(launches)
        chain.clear()
        starts[str(schedule)].replay()
        errors[str(schedule)] = chain.worst_error(_ROWS)
    timings = time_starts(device, starts)
    found: dict[str, list[Timed]] = {READ: [], BROUGHT: []}
    for schedule, estimate in asked.items():
        name = str(schedule)
        time = Median.of([each / PRODUCTS for each in timings[name].seconds])
        side = BROUGHT if dict(schedule.parameters())["residual"] else READ
        found[side].append(Timed(name, estimate, time, errors[name]))
    return found
