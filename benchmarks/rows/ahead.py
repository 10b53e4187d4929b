"""What kernels save by asking for constants in front of the wait (docs/decisions/0051-asked-ahead.md).

Kernels in chains of early launches, with cold constants and inputs that were just written: as they are, and the same
without their prefetches.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from math import prod
from typing import Any, TypeVar

from subjects.cold_chain import ColdChain, Subject
from subjects.problems import convolution, matmul, with_gelu

from rows.base import Context, Outcome, Row, microseconds
from wpk.backends import open_gpu
from wpk.build import CompilePool, KernelCache
from wpk.device import CudaDevice
from wpk.device.timing import Patience, Timing, time_side_by_side
from wpk.device.timing import Subject as Timed
from wpk.dtypes import DType
from wpk.errors import CompileError
from wpk.execution import KernelImage
from wpk.kernel_source import KernelSource
from wpk.problems import Convolution, Matmul
from wpk.schedules.registry import TEMPLATE_OF
from wpk.targets.registry import find_target
from wpk.trial import Regime

P = TypeVar("P", Convolution, Matmul)

NOTHING, CONSTANTS = "nothing", "constants"

VARIANTS = {
    NOTHING: "#include <wpk/kernels/copies/prefetch.cuh>\n#define prefetchConstant(...) ((void)0)\n",
    CONSTANTS: "",
}
"""What is asked for early, and what stands in front of the unit so that nothing else is."""

_ARCH = find_target("h200").arch

_MOST_NOISE = 1.02
_FLUSHED = 2
"""Memory filled in front of a sample, as a multiple of L2."""


def subjects() -> dict[str, Subject]:
    """Layers of ConvNeXt, BERT and ResNet-50 at batch 1, with schedules that are chosen for the like."""
    half = DType.FP16
    products = {
        "matmul 196x384 384x1536 +bias gelu": (
            with_gelu(matmul(196, 1536, 384, bias=half)),
            {"block_m": 64, "block_n": 64, "block_k": 64, "stages": 6},
        ),
        "matmul 196x1536 1536x384 +bias +res": (
            matmul(196, 384, 1536, bias=half, residual=True),
            {"block_m": 64, "block_n": 64, "block_k": 128, "stages": 3, "split": 4, "cluster": 1},
        ),
        "matmul 128x768 768x768 +bias +res": (
            matmul(128, 768, 768, bias=half, residual=True),
            {"block_m": 64, "block_n": 32, "block_k": 128, "stages": 6},
        ),
    }
    images = {
        "conv 3x3 256 256 14 +bias relu": (
            convolution(256, bias=half, relu=True),
            {"block_m": 64, "block_n": 64, "block_k": 128, "stages": 3, "split": 6, "cluster": 1},
        ),
        "conv 1x1 1024 256 14 +bias +res": (
            convolution(1024, 256, filter=1, bias=half, residual=True, relu=True),
            {"block_m": 64, "block_n": 32, "block_k": 128, "stages": 2, "split": 4, "cluster": 1},
        ),
    }
    depthwise = convolution(384, filter=7, groups=384, bias=half)
    walk = {"vector": 4, "pixels": 2, "threads": 128}
    return {
        **{name: _subject(each, "gemm_wgmma", tile) for name, (each, tile) in products.items()},
        **{name: _subject(each, "conv_wgmma", tile) for name, (each, tile) in images.items()},
        "depthwise 7x7 384 14 +bias": _subject(depthwise, "depthwise", walk),
    }


def _subject(problem: P, template: str, parameters: dict[str, int]) -> Subject:
    """Its vectors are constants, as those of a lowered model."""
    epilogue = problem.epilogue
    operands = tuple(replace(t, constant=t != problem.y) for t in epilogue.operands)
    known = replace(problem, epilogue=replace(epilogue, operands=operands))
    schedule = TEMPLATE_OF[template].schedule_type(**parameters, early=1)
    return Subject(known, template, schedule)


def variants(subject: Subject) -> dict[str, KernelSource]:
    """The kernel in both variants."""
    source = subject.source
    return {name: replace(source, text=head + source.text) for name, head in VARIANTS.items()}


def rows() -> list[Row]:
    """One: all layers in one run."""
    claim = "asking early for constants makes no kernel slower, and all faster together"
    return [Row("ahead", claim, _measure)]


def _measure(context: Context) -> Outcome:
    figures: dict[str, Any] = {}
    factors, equal = [], True
    with open_gpu() as device:
        scratch_bytes = _FLUSHED * device.facts.l2_bytes
        scratch = device.allocate(scratch_bytes)
        for name, subject in subjects().items():
            timings, same = _timed(device, subject, (scratch, scratch_bytes), context)
            base = timings[NOTHING].median
            figures[name] = {
                "seconds": {variant: timing.median for variant, timing in timings.items()},
                "noise": {variant: timing.noise for variant, timing in timings.items()},
                "same_bits": same,
            }
            factors.append(timings[CONSTANTS].median / base)
            equal &= same
            context.seconds_left()
    mean = prod(factors) ** (1 / len(factors))
    passed = equal and mean < 1 and max(factors) < _MOST_NOISE
    parts = [
        f"{mean:.3f} of the time without" if equal else "other bits",
        *map(_shown, figures.items()),
    ]
    return Outcome(passed, "; ".join(parts), figures)


def _shown(layer: tuple[str, dict[str, Any]]) -> str:
    name, figures = layer
    times = (f"{each} {microseconds(s)}" for each, s in figures["seconds"].items())
    return f"{name}: {', '.join(times)}"


def _timed(
    device: CudaDevice, subject: Subject, scratch: tuple[int, int], context: Context
) -> tuple[dict[str, Timing], bool]:
    """Times of a chain's turn in both variants, and whether both write the same bits."""
    chain, sources = ColdChain(device, subject), variants(subject)
    _load(device, [*sources.values(), *(each.source for each in chain.copies)], context)
    flush = partial(device.fill, *scratch, 0)
    timed, written = [], set()
    for source in sources.values():
        replay = device.capture(chain.launches(source.digest))
        replay.replay()
        written.add(device.read(chain.output, chain.output_bytes).tobytes())
        timed.append(Timed(replay, chain.length, flush, Regime.COLD))
    patience = Patience(seconds=0.5)
    timings = time_side_by_side(device, timed, patience)
    return dict(zip(sources, timings, strict=True)), len(written) == 1


def _load(device: CudaDevice, sources: list[KernelSource], context: Context) -> None:
    with CompilePool(_ARCH, cache=KernelCache(context.store / "kernels")) as pool:
        for done in pool.compile(sources):
            if done.kernel is None:
                raise CompileError(str(done.error), fix="see the kernel's header")
            device.load(KernelImage(done.source.digest, done.source, done.kernel.cubin))
