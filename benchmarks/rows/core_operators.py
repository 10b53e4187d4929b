"""Kernels, and cuDNN, that C++ executes from specs: the same bits as Python's device, plainly and captured."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from pathlib import Path

from subjects.core_operator import core_cases, execute, in_sequence

from rows.base import Context, Outcome, Row
from rows.engines import CUDNN, EXPORTED, cudnn_plan, free_plan, static_plan
from wpk.backends import open_gpu
from wpk.engine import random_inputs
from wpk.plan.plan_file import read_plan

THREADS = 8
"""That execute a case at the same time, each on memory of its own."""

AT_ONCE = 4
"""Programs on the GPU."""

SEQUENCES = 4
"""Pairs of steps that are executed as one operator, too: no template has several kernels."""

BATCH = 3
"""Of the network whose batch is free; its plan is tuned for another."""


def rows() -> list[Row]:
    """One of each network and precision, one with a free batch, and those in which cuDNN computes much."""
    claim = (
        "C++ executes each step from its spec: Python's bits, in 8 threads, plainly and captured"
    )
    cases = [(name, precision) for name in EXPORTED for precision in ("fp16", "fp32")]
    return [
        *(Row(f"core.{n}.{p}", claim, partial(_measure, n, p)) for n, p in cases),
        Row("core.free_batch.fp16", claim, _measure_free),
        *(Row(f"core.cudnn.{name}.fp16", claim, partial(_measure_cudnn, name)) for name in CUDNN),
    ]


def _measure(name: str, precision: str, context: Context) -> Outcome:
    return _compare(static_plan(name, context, precision)[1], context)


def _measure_free(context: Context) -> Outcome:
    return _compare(free_plan(context), context)


def _measure_cudnn(name: str, context: Context) -> Outcome:
    return _compare(cudnn_plan(name, context), context)


def _compare(path: Path, context: Context) -> Outcome:
    bundle = read_plan(path)
    dims = dict.fromkeys(bundle.plan.free, BATCH)
    arrays = random_inputs(bundle.plan, 0, dims)
    with open_gpu() as device:
        cases = list(core_cases(bundle, device, arrays, dims))
    launched = [case for case in cases if case.spec.variants[0].launches]
    cases += [in_sequence(*pair) for pair in pairwise(launched[: SEQUENCES + 1])]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        said = list(pool.map(lambda case: execute(case, context.folder, THREADS), cases))
    wrong = {case.name: words for case, words in zip(cases, said, strict=True) if words}
    families = Counter(case.family for case in cases)
    features = Counter(feature for case in cases for feature in case.features)
    figures = {
        "cases": len(cases),
        "threads": THREADS,
        "families": dict(sorted(families.items())),
        "features": dict(sorted(features.items())),
        "wrong": wrong,
    }
    summary = (
        f"{len(cases) - len(wrong)} of {len(cases)} steps of {len(families)} templates have Python's bits; "
        + ", ".join(f"{feature} {count}" for feature, count in sorted(features.items()))
    )
    return Outcome(bool(cases) and not wrong, summary, figures)
