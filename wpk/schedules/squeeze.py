"""Squeeze and excitation: blocks of a cluster share an image (squeeze.cuh)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from wpk.dims import product
from wpk.expression import cpp_type, flops
from wpk.performance import Columns, Floats, Work
from wpk.problems import RUN, Squeeze
from wpk.schedules.block_limits import cluster_limits, cluster_sizes, shared_limit
from wpk.schedules.limit import Limit
from wpk.schedules.single_kernel import KernelPlan, SingleKernelTemplate
from wpk.schedules.streaming import Stream
from wpk.schedules.strided import SECTOR_BYTES, cpp_tensor, cpp_tensors, why_unaddressable
from wpk.schedules.template import Schedule
from wpk.schedules.unit import Type
from wpk.targets import Target

_WORD, _COPY_BYTES = 4, 16
_LANE_PADDING = 4  # floats behind the sums of a lane; squeeze.cuh has the same

_POOLED_AT_ONCE, _SCALED_AT_ONCE = 8, 4
"""Loads that a thread has under way; squeeze.cuh has the same."""

_ROW_CYCLES, _ROUND_CYCLES, _BLOCK_BYTES, _WEIGHT_CYCLES = 1950.0, 1870.0, 43.5, 2020.0
"""A block's own way, in cycles: sums over lanes, means, both products and their expressions; a round of loads, as many as
are under way at once; what all passes over the images move in a cycle, for blocks of a cluster share the way to L2; and
weights that are not staged. Fitted with the next one to 42 kernels of four squeezes of EfficientNet-B0, measured on an
H100 in chains of equal kernels with early launch: estimates differ from times by 6 % (root of the mean square), by 14 %
at most. Six more had bank conflicts that are no more."""

_MEETING_CYCLES = 700.0
"""Of a meeting of the blocks: the trip of a store to another block (180 cycles, arXiv 2402.13499), two barriers of the
block, and the sum. An assumption, not measured yet: with barriers of the cluster and loads it took 2200 cycles there."""


@dataclass(frozen=True)
class SqueezeSchedule(Schedule):
    """Parameters of squeeze.cuh.

    Attributes:
        blocks: Of a cluster, which share an image.
        threads: Threads of a block.
        staged: 1 if weights go to shared memory before the kernel in front has ended, else 0.
        by_pixels: 1 if blocks share the pixels as they pool, 0 if they share the channels.
        kept: 1 if what a block pools is copied to shared memory, and scaled from there, else 0.
        early: 1 for programmatic dependent launch (early_launch.cuh), else 0.
    """

    blocks: int
    threads: int
    staged: int
    by_pixels: int
    kept: int = 0
    early: int = 0


class SqueezeTemplate(SingleKernelTemplate[Squeeze, SqueezeSchedule]):
    """A mean, two products of its row and what they scale, in one kernel."""

    name: ClassVar[str] = "squeeze"
    version: ClassVar[int] = 2
    problem_type = Squeeze
    schedule_type = SqueezeSchedule

    def why_not(self, problem: Squeeze, target: Target) -> str | None:
        """Refuses 64-bit offsets, and padding that is no part of the last run of channels."""
        del target
        images, gates = (1, problem.c, problem.pixels), (1, problem.k, problem.places)
        reason = why_unaddressable([problem.x], images)
        reason = reason or why_unaddressable([problem.y, *problem.scaled.operands], gates)
        if reason is None and problem.y.padding and not problem.y.pads(1):
            return f"the output is padded by {problem.y.padding} along its pixels"
        return reason

    def _axes(self, problem: Squeeze, target: Target) -> dict[str, tuple[int, ...]]:
        """Blocks of an image, threads, and how weights and pixels come."""
        blocks = cluster_sizes((8, 4, 2), target)
        return {
            "blocks": blocks,
            "threads": (128, 256, 512, 1024),
            "staged": (1, 0) if target.has_async_copy else (0,),
            "by_pixels": (0, 1) if len(blocks) > 1 and problem.pixels > 1 else (0,),
            "kept": (1, 0) if target.has_async_copy and _may_keep(problem) else (0,),
        }

    def _limits(self, problem: Squeeze) -> Sequence[Limit]:
        """What squeeze.cuh can compute."""
        return (
            Limit("blocks in (1, 2, 4, 8, 16)", "an image has 1, 2, 4, 8 or 16 blocks"),
            Limit("threads % 32 == 0 and threads <= 1024", "a block has whole warps, 32 at most"),
            Limit("staged in (0, 1)", "staged is 0 or 1"),
            Limit(
                f"by_pixels == 0 or (by_pixels == 1 and blocks > 1 and {problem.pixels} > 1)",
                "several blocks share several pixels",
            ),
            Limit(
                f"kept in (0, {int(_may_keep(problem))})",
                "kept is 0, or 1 where a pixel's channels are whole pieces of 16 bytes",
            ),
        )

    def _target_limits(self, problem: Squeeze, target: Target) -> Sequence[Limit]:
        """Shared memory, clusters and asynchronous copies."""
        limits = cluster_limits(target)
        if not target.has_async_copy:
            limits.append(Limit("staged + kept == 0", f"{target.name} has no asynchronous copies"))
        return (*limits, shared_limit(target))

    def work(self, problem: Squeeze, columns: Columns, target: Target) -> Work:
        """One step, which is a block's own way from its first load to its last store: latencies, not rates."""
        blocks, threads = (columns[name].astype(np.float64) for name in ("blocks", "threads"))
        by_pixels, shape = columns["by_pixels"] == 1, _Shape(problem, columns)
        kept, scales = columns["kept"] == 1, problem.places > 1
        size, weight, images = problem.x.dtype.bytes, problem.down.dtype.bytes, problem.n.value
        # The busiest block's share: slices are whole runs, so that some blocks may have less, or nothing.
        pooled = shape.pooled * RUN * np.where(by_pixels, shape.pixels, problem.pixels)
        run_bytes = shape.pooled * RUN * size
        moved = pooled * size * np.maximum(1.0, SECTOR_BYTES / run_bytes)
        if _pixels_fastest(problem):
            moved = pooled * size
        written = shape.stored * RUN * (shape.pixels if scales else 1.0)
        read = [each for each in problem.scaled.operands if all(each.strides[1:])]
        again = read == [problem.x]  # in networks the same images
        scaled = sum(each.dtype.bytes for each in read) * np.where(kept & again, 0.0, 1.0)
        passes = moved + written * (scaled + (problem.y.dtype.bytes if scales else 0.0))
        multiplied = problem.hidden_size * (shape.slice + shape.gate_slice) * RUN
        pool_rounds = np.where(kept, 1.0, np.ceil(pooled / RUN / threads / _POOLED_AT_ONCE))
        scale_rounds = np.ceil(written / RUN / threads / _SCALED_AT_ONCE) * (scaled > 0)
        meetings = (blocks > 1) * (1.0 + by_pixels + shape.shares_gates)
        way = _ROW_CYCLES + _MEETING_CYCLES * meetings + passes / _BLOCK_BYTES
        way = way + _ROUND_CYCLES * (pool_rounds + scale_rounds)
        way = way + _WEIGHT_CYCLES * (columns["staged"] == 0)
        operations = pooled + 2.0 * multiplied + written * (1 + flops(problem.scaled.expression))
        work = Stream(
            element_bytes=size,
            flops=operations * blocks * images,
            loads=(moved + written * scaled + multiplied * weight) * blocks * images,
            stores=float(images * problem.k * problem.places * problem.y.dtype.bytes),
            blocks=blocks * images,
            threads=threads,
            registers=np.full(blocks.shape, 64.0),
            shared_bytes=_shared_bytes(problem, columns),
            thread_loads=multiplied / threads / 2.0,
            early=columns["early"] == 1,
        ).work(target)
        return replace(work, chain_cycles=way)

    def kernel(self, problem: Squeeze, schedule: SqueezeSchedule) -> KernelPlan:
        """Clusters along x, one for each image."""
        pixels, places = _pixels_fastest(problem), _places_fastest(problem)
        y_order = (0, 1, 2) if places else (0, 2, 1)
        return KernelPlan(
            members={
                "X": Type(cpp_tensor(problem.x, (0, 1, 2) if pixels else (0, 2, 1))),
                "Y": Type(cpp_tensor(problem.y, y_order)),
                "Down": Type(cpp_tensor(problem.down, (0, 1))),
                "Hidden": Type(cpp_tensors(problem.hidden.operands, (0, 1))),
                "Gates": Type(cpp_tensors(problem.gates.operands, (0, 1))),
                "Scaled": Type(cpp_tensors(problem.scaled.operands, y_order)),
                "MeansOf": Type(cpp_type(problem.means)),
                "HiddenOf": Type(cpp_type(problem.hidden.expression)),
                "GatesOf": Type(cpp_type(problem.gates.expression)),
                "ScaledOf": Type(cpp_type(problem.scaled.expression)),
                "pixelsFastest": pixels,
                "placesFastest": places,
                "c": problem.c,
                "pixels": problem.pixels,
                "hidden": problem.hidden_size,
                "k": problem.k,
                "places": problem.places,
                "rowPadding": problem.y.padding,
            },
            grid=(product(problem.leading.expression, schedule.blocks), 1, 1),
            threads=schedule.threads,
            shared_bytes=int(_shared_bytes(problem, schedule.columns())[0]),
            cluster=(schedule.blocks, 1, 1),
        )


class _Shape:
    """Runs of a block, as ``SqueezeShape`` of squeeze.cuh has them."""

    def __init__(self, problem: Squeeze, columns: Columns) -> None:
        blocks, threads = columns["blocks"].astype(np.float64), columns["threads"]
        by_pixels, scales = columns["by_pixels"] == 1, problem.places > 1
        channels, gates = (-(-each // RUN) for each in (problem.c, problem.k + problem.y.padding))
        channels = max(channels, gates) if scales else channels
        self.slice: Floats = np.ceil(channels / blocks)
        self.gate_slice: Floats = np.ceil((channels if scales else gates) / blocks)
        self.pooled: Floats = np.where(by_pixels, channels, self.slice)
        self.pixels: Floats = np.where(by_pixels, np.ceil(problem.pixels / blocks), problem.pixels)
        self.lanes: Floats = np.floor(threads / np.minimum(self.pooled, threads))
        self.shares_gates = by_pixels & scales
        self.stored: Floats = np.where(self.shares_gates, channels, self.gate_slice)


def _shared_bytes(problem: Squeeze, columns: Columns) -> Floats:
    shape, hidden_runs = _Shape(problem, columns), -(-problem.hidden_size // RUN)
    blocks, by_pixels = columns["blocks"], columns["by_pixels"]
    lanes = 0.0 if _pixels_fastest(problem) else shape.lanes * (shape.pooled * RUN + _LANE_PADDING)
    own = shape.pooled + shape.slice + 2 * hidden_runs + shape.gate_slice
    sent = np.where(blocks > 1, blocks * hidden_runs + 1.0, 0.0)  # parts, and a run of barriers
    sent = sent + blocks * (by_pixels * shape.slice + shape.shares_gates * shape.gate_slice)
    down = problem.hidden_size * (shape.slice + 1) * RUN
    up = shape.gate_slice * RUN * (hidden_runs + 1) * RUN
    staged = columns["staged"] * (down + up) * problem.down.dtype.bytes
    kept = columns["kept"] * shape.pixels * shape.pooled * RUN * problem.x.dtype.bytes
    total: Floats = (lanes + (own + sent) * RUN) * _WORD + staged + kept
    return total


def _may_keep(problem: Squeeze) -> bool:
    """Whether runs of channels can be copied: they lie together, and are whole behind the last channel, too."""
    x = problem.x
    whole = (problem.c + x.padding) % RUN == 0 and x.alignment % _COPY_BYTES == 0
    return whole and problem.pixels > 1 and x.strides[1] == 1


def _pixels_fastest(problem: Squeeze) -> bool:
    """Whether a channel's pixels are neighbours in memory, and a pixel's channels are not."""
    return problem.pixels > 1 and problem.x.strides[2] == 1 and problem.x.strides[1] != 1


def _places_fastest(problem: Squeeze) -> bool:
    return problem.places > 1 and problem.y.strides[1] != 1
