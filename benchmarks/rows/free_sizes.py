"""BERT-base of free batch and sequence: plans that take any size beside plans fixed at one.

Each row is one size: what the profile that serves the size takes there, and what a plan takes that knows
nothing else, in turns in one process. Each makes the two plans that it needs, so that rows can be
measured one at a time; profiles that serve several sizes are made once and kept, and `free.bert.plans`
makes all of them ahead. With ``--effort 0`` the models choose all schedules, and nothing is measured but
the two plans.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import onnx
import onnxruntime
from exporters.store import read
from numpy.typing import NDArray

from rows.base import BENCHMARKS, Context, Outcome, Row, RowError, microseconds
from rows.goals import Goal, as_figures
from rows.networks import Median
from rows.result_file import Record, figures_of
from rows.side_by_side import time_starts
from rows.tuned import plans_folder
from wpk.backends import open_gpu
from wpk.checks.limits import LIMITS, OutputDistance
from wpk.checks.model_check import output_error
from wpk.dtypes import Precision
from wpk.engine import Engine, random_inputs
from wpk.execution import Replay
from wpk.plan.measurement import Ratio
from wpk.plan.plan_file import read_plan

Arrays = Mapping[str, NDArray[Any]]

ARCHIVE = BENCHMARKS / "subjects" / "bert.zip"
MODEL, INPUTS = "bert_base.dynamo.both", ("input_ids", "attention_mask")

FREE, FIXED = "free", "fixed"
LARGEST_TIME = Goal("time over a plan fixed at that size", 1.15, at_most=True)

LEAST_SIZES = 12
"""That the claim is about."""

ERROR_FACTOR = 2.0
"""What the free plan's error may be of the fixed one's, where that is beyond the limits."""

_ROUNDS = 3
"""Engines are loaded anew so often, since where their memory lies moves their time."""


@dataclass(frozen=True)
class Size:
    """Sentences at once, and tokens of each."""

    batch: int
    tokens: int

    def __str__(self) -> str:
        """``b8s128``, as rows are called."""
        return f"b{self.batch}s{self.tokens}"

    @property
    def shape(self) -> str:
        """``8x128``, as ``--shapes`` takes it."""
        return f"{self.batch}x{self.tokens}"


@dataclass(frozen=True)
class Profile:
    """A plan of free sizes: the smallest, the one that it is tuned at, and the largest."""

    smallest: Size
    fastest: Size
    largest: Size

    def __str__(self) -> str:
        """Of its ends."""
        return f"{self.smallest}-{self.largest}"

    @property
    def shapes(self) -> str:
        """As ``--shapes`` takes it."""
        return _shapes(":".join(s.shape for s in (self.smallest, self.fastest, self.largest)))

    def serves(self, size: Size) -> bool:
        """Whether a run of this size may go to it."""
        low, high = self.smallest, self.largest
        return low.batch <= size.batch <= high.batch and low.tokens <= size.tokens <= high.tokens


SIZES = tuple(
    Size(*each)
    for each in (
        *((1, 1), (1, 16), (1, 128), (1, 300), (1, 384), (1, 512), (4, 64)),
        *((8, 128), (8, 384), (12, 200), (16, 128), (16, 512), (32, 128), (32, 512)),
    )
)

PROFILES = tuple(
    Profile(*(Size(*size) for size in ends))
    for ends in (
        ((1, 1), (1, 1), (1, 8)),
        ((1, 9), (1, 16), (1, 64)),
        ((1, 65), (1, 128), (1, 256)),
        ((1, 257), (1, 320), (1, 320)),
        ((1, 321), (1, 384), (1, 448)),
        ((1, 449), (1, 512), (1, 512)),
        ((2, 1), (4, 64), (32, 96)),
        ((2, 97), (8, 128), (8, 512)),
        ((9, 97), (16, 128), (32, 192)),
        ((9, 193), (16, 256), (32, 288)),
        ((9, 289), (16, 512), (32, 512)),
    )
)
"""Every batch of 1 to 32 and every length of 1 to 512 has one."""


def rows() -> list[Row]:
    """One a size, and one over all of them."""
    claim = "BERT-base in fp16: a profile of free batch and sequence beside a plan of one size"
    cases = [
        Row(f"free.bert.{size}", claim, partial(_measure, size), goals=(LARGEST_TIME,))
        for size in SIZES
    ]
    together = "BERT-base of free batch and sequence at all sizes"
    made = "plans of BERT-base for fourteen sizes, and eleven profiles for all"
    return [
        Row("free.bert.plans", made, _make_plans),
        *cases,
        Row("free.bert.all", together, _judge_rows, is_last=True, goals=(LARGEST_TIME,)),
    ]


def profile_of(size: Size) -> Profile:
    """The profile that serves a size."""
    return next(each for each in PROFILES if each.serves(size))


def _shapes(text: str) -> str:
    return ",".join(f"{name}:{text}" for name in INPUTS)


def _make_plans(context: Context) -> Outcome:
    """Make all plans ahead, several at once where nothing is measured."""
    shapes = {str(size): _shapes(size.shape) for size in SIZES}
    shapes |= {str(profile): profile.shapes for profile in PROFILES}
    model_file(context)
    begun = time.perf_counter()
    with ThreadPoolExecutor(1 if context.effort else max(1, (os.cpu_count() or 1) // 2)) as pool:
        made = list(pool.map(lambda each: _plan(*each, context), shapes.items()))
    seconds = time.perf_counter() - begun
    figures = {"seconds": seconds, "plans": [path.name for path in made]}
    return Outcome(True, f"{len(made)} plans in {seconds:.0f} s", figures)


def _measure(size: Size, context: Context) -> Outcome:
    profile = profile_of(size)
    plans = {
        FREE: _plan(str(profile), profile.shapes, context),
        FIXED: _plan(str(size), _shapes(size.shape), context),
    }
    samples: dict[str, tuple[float, ...]] = {FREE: (), FIXED: ()}
    outputs: dict[str, Arrays] = {}
    inputs: Arrays = {}
    with open_gpu() as device:
        for _ in range(_ROUNDS):
            with ExitStack() as held:
                starts: dict[str, Replay] = {}
                for name, path in plans.items():
                    engine = held.enter_context(Engine(read_plan(path), device))
                    inputs = inputs_of(size, engine)
                    outputs[name] = dict(engine.run(inputs))
                    starts[name] = engine.bind(_dims(size, engine)).replay
                for name, timing in time_starts(device, starts).items():
                    samples[name] += timing.seconds
    return judge(samples, outputs, _right(inputs, context), str(profile))


def _right(inputs: Arrays, context: Context) -> Arrays:
    """What ONNX Runtime gives in fp32."""
    session = onnxruntime.InferenceSession(model_file(context), providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_outputs()]
    return dict(zip(names, session.run(names, dict(inputs)), strict=True))


def _plan(name: str, shapes: str, context: Context) -> Path:
    """The plan of these shapes: the one that another row wrote, or a new one."""
    kept = plans_folder(context) / f"bert_base.{name}.plan"
    if kept.is_file():
        return kept
    fresh = context.folder / f"{name}.plan"
    measured = ["--effort", context.effort, "--budget", context.budget]
    how = ["--cache", context.store, *(measured if context.effort else ["--search", "static"])]
    what = ["optimize", model_file(context), "-o", fresh, "--precision", "fp16"]
    # The row itself compares what the plan gives: a reference in float64 would take minutes.
    context.wpk(*what, "--shapes", shapes, "--fallback", "off", "--check", "off", *how)
    kept.parent.mkdir(parents=True, exist_ok=True)
    os.replace(fresh, kept)
    return kept


def model_file(context: Context) -> Path:
    """The model, with weights drawn from a seed."""
    path = context.store / "networks" / f"{MODEL}.onnx"
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = context.folder / "model.onnx"
        onnx.save(read(MODEL, archive=ARCHIVE)[0], fresh)
        os.replace(fresh, path)
    return path


def _dims(size: Size, engine: Engine) -> dict[str, int]:
    sizes = {"batch": size.batch, "sequence": size.tokens}
    return {name: sizes[name] for name in engine.plan.free}


def inputs_of(size: Size, engine: Engine) -> Arrays:
    """The same tokens for every plan; no sentence is padded."""
    inputs = dict(random_inputs(engine.plan, 0, _dims(size, engine)))
    return inputs | {"attention_mask": np.ones_like(inputs["attention_mask"])}


def judge(
    samples: Mapping[str, Sequence[float]],
    outputs: Mapping[str, Arrays],
    right: Arrays,
    profile: str,
) -> Outcome:
    """Whether free sizes cost no more than is allowed, and are as right.

    Args:
        samples: Seconds of one inference of both plans.
        outputs: What both gave, by name.
        right: What is right.
        profile: That served the size, for whoever reads the figures.
    """
    times = {name: Median.of(seconds) for name, seconds in samples.items()}
    ratio = times[FIXED].speedup_over(times[FREE])
    goal = LARGEST_TIME.judged_ratio(ratio)
    errors = {
        plan: {name: output_error(arrays[name], each) for name, each in right.items()}
        for plan, arrays in outputs.items()
    }
    is_right = all(_fits(errors[FREE][name], errors[FIXED][name]) for name in right)
    worst = max(error.worst for error in errors[FREE].values())
    told = ", ".join(f"{name} {microseconds(t.median_seconds)}" for name, t in times.items())
    figures: dict[str, Any] = {
        "times": {n: asdict(t) | {"samples": len(samples[n])} for n, t in times.items()},
        "ratio": asdict(ratio),
        "errors": {n: {k: asdict(e) for k, e in each.items()} for n, each in errors.items()},
        "profile": profile,
    }
    wrong = "" if is_right else f"; WRONG: errors of {worst:.1e}"
    passed = goal.reached and is_right
    return Outcome(passed, f"{told}; {goal}{wrong}", figures | as_figures([goal]))


def _fits(free: OutputDistance, fixed: OutputDistance) -> bool:
    limit = LIMITS[Precision.FP16].widened(fixed, ERROR_FACTOR)
    return free.median <= limit.median and free.worst <= limit.worst


def _judge_rows(context: Context) -> Outcome:
    return judge_all(context.records)


def judge_all(records: Mapping[str, Record]) -> Outcome:
    """Hold the largest ratio to the goal.

    Raises:
        RowError: Some size has not been measured.
    """
    found = {size: _ratio(records, size) for size in SIZES}
    missing = [str(size) for size, ratio in found.items() if ratio is None]
    if missing:
        raise RowError(f"not measured yet: {', '.join(missing)}")
    ratios = [ratio for ratio in found.values() if ratio is not None]
    worst = max(ratios, key=lambda ratio: ratio.median)
    goal = LARGEST_TIME.judged_ratio(worst)
    middle = median(ratio.median for ratio in ratios)
    figures: dict[str, Any] = {
        "median": middle,
        "largest": asdict(worst),
        "ratios": {str(size): asdict(ratio) for size, ratio in found.items() if ratio is not None},
    }
    summary = f"{len(ratios)} sizes, median {middle:.2f}; {goal}"
    return Outcome(goal.reached, summary, figures | as_figures([goal]))


def _ratio(records: Mapping[str, Record], size: Size) -> Ratio | None:
    figures = figures_of(records, f"free.bert.{size}")
    return Ratio(**figures["ratio"]) if "ratio" in figures else None
