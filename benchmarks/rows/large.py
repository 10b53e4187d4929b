"""A decoder of 6.7 G parameters in fp16, with its cache as inputs and outputs, optimized, checked and timed.

The file of 13.5 GB is drawn on this machine (`subjects.decoder_weights`), and removed at the end with the
plan, which is as large. One token is decoded; every layer is held to float64 on the engine's own input of it
(`rows.decoder_check`), and the scores of all tokens to what the decoder gives in float64 from end to end:
that takes the place of wpk's own check of the finished plan (``--check off``), which evaluates the model
several times on the CPU. Candidates are checked before they are timed, as always.
Time stands beside PyTorch's, both as CUDA graphs that take turns on one stream, and beside what reading every weight
once takes at the bandwidth of the GPU's data sheet: decoding one token can take no less.

It takes 13.5 GB of disk for the model, as much for each form that whole engines want its weights in (one or
two), as much for the plan, and 5 GB for what passes compute; 16 GB of memory beside what the operating system
keeps of files; of the GPU's 27 GB for two forms, or for the engine and PyTorch.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from typing import Any

import numpy as np
from numpy.typing import NDArray
from subjects.decoder import EMBEDDING, LLAMA_7B, LOGITS, Decoder
from subjects.decoder_weights import data_of, draw_inputs, open_weights, write

from rows.base import Context, Outcome, Row, RowError, microseconds
from rows.decoder_check import faults, layer_errors, right_logits
from rows.networks import OURS, Median
from rows.side_by_side import time_starts
from rows.torch_decoder import TorchDecoder, TorchDecoderGraph
from wpk.backends import open_gpu
from wpk.checks.limits import LIMITS, OutputDistance
from wpk.checks.model_check import output_error
from wpk.dtypes import Precision
from wpk.engine import Engine
from wpk.execution import Replay
from wpk.plan.plan_file import read_plan
from wpk.targets.registry import find_target

NAME = "large.decoder"
BASELINE = "PyTorch"

ERROR_FACTOR = 2.0
"""What the error of the scores may be of the baseline's, where that is beyond the limits."""

_BUDGET, _EFFORT = "20s", 0
"""Of measuring: most of the row's time goes to weights, which are written, read and checked."""

_SEED = 1000


def rows() -> list[Row]:
    """One."""
    claim = "a decoder of 6.7 G parameters in fp16 with a cache: right layer by layer"
    return [Row(NAME, claim, partial(measure, LLAMA_7B))]


def measure(decoder: Decoder, context: Context) -> Outcome:
    """Write, optimize, check and time a decoder on this machine's GPU."""
    path, plan = context.folder / "model.onnx", context.folder / "model.plan"
    stages = _Stages()
    try:
        write(decoder, path)
        stages.end("write")
        how = ["--effort", _EFFORT, "--budget", _BUDGET, "--cache", context.store]
        how += ["--check", "off", "--fallback", "off", "--log-file", context.folder / "wpk.log"]
        context.wpk("optimize", path, "-o", plan, "--precision", "fp16", *how)
        stages.end("optimize")
        outcome = _measured(decoder, path, plan, stages)
    finally:
        for large in (data_of(path), plan):
            large.unlink(missing_ok=True)
    memory = getrusage(RUSAGE_CHILDREN).ru_maxrss * 1024
    more = {"stage_seconds": stages.seconds, "largest_process_bytes": memory}
    return Outcome(outcome.passed, outcome.summary, outcome.figures | more)


class _Stages:
    """Seconds of what comes one after another."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._begun = time.monotonic()

    def end(self, stage: str) -> None:
        now = time.monotonic()
        self.seconds[stage], self._begun = now - self._begun, now


def _measured(decoder: Decoder, path: Path, plan: Path, stages: _Stages) -> Outcome:
    inputs, bundle = draw_inputs(decoder, _SEED), read_plan(plan)
    embedding = open_weights(decoder, path)[EMBEDDING]
    stages.end("read the plan")
    with open_gpu() as device, Engine(bundle, device) as engine:
        outputs = engine.run(inputs)
        stages.end("load and run the engine")
        theirs = TorchDecoder(decoder, path, "cuda")
        layers = theirs.in_float64()
        errors = layer_errors(layers, inputs, outputs, embedding)
        right = right_logits(layers, inputs, embedding)
        stages.end("check")
        graph = TorchDecoderGraph(theirs, inputs, device.stream)
        scores = {OURS: outputs[LOGITS], BASELINE: graph.logits()}
        starts: dict[str, Replay] = {OURS: engine.bind().replay, BASELINE: graph}
        samples = {name: t.seconds for name, t in time_starts(device, starts).items()}
        stages.end("time")
    if not np.isfinite(scores[BASELINE]).all():
        raise RowError("PyTorch gives values that are no numbers: nothing to compare with")
    target, steps = bundle.plan.target, bundle.plan.steps
    ceiling = find_target(target).global_bandwidth
    judged = judge(decoder, errors, scores, right, samples, ceiling)
    chosen = sorted({f"{s.operator.problem.words()}: {s.candidate}" for s in steps})
    return Outcome(judged.passed, judged.summary, judged.figures | {"chosen": chosen})


def judge(
    decoder: Decoder,
    errors: Mapping[str, OutputDistance],
    scores: Mapping[str, NDArray[np.generic]],
    right: NDArray[np.float64],
    samples: Mapping[str, Sequence[float]],
    ceiling: float,
) -> Outcome:
    """Whether an engine is right, and how fast it is.

    Args:
        decoder: What it computes.
        errors: Of its layers, see `rows.decoder_check.layer_errors`.
        scores: What it and the baseline give for all tokens.
        right: What they should give.
        samples: Seconds of one call of both.
        ceiling: Bytes a second of the GPU's memory, as its data sheet says.
    """
    wrong = faults(errors)
    ends = {name: output_error(found, right) for name, found in scores.items()}
    limit = LIMITS[Precision.FP16].widened(ends[BASELINE], ERROR_FACTOR)
    if not (ends[OURS].median <= limit.median and ends[OURS].worst <= limit.worst):
        wrong.append(f"scores from end to end: errors up to {ends[OURS].worst:.1e}")
    times = {name: Median.of(seconds) for name, seconds in samples.items()}
    speedup = times[OURS].speedup_over(times[BASELINE])
    size = 2 * (
        decoder.parameters() - decoder.vocabulary * decoder.hidden
    )  # a table is not read through
    shares = {name: size / t.median_seconds / ceiling for name, t in times.items()}
    told = ", ".join(
        f"{name} {microseconds(t.median_seconds)} ({shares[name]:.0%} of {ceiling / 1e12:.2f} TB/s)"
        for name, t in times.items()
    )
    worst = max(errors.values(), key=lambda each: each.worst)
    verdict = f"WRONG: {'; '.join(wrong[:3])}" if wrong else f"largest error {worst.worst:.1e}"
    figures: dict[str, Any] = {
        "times": {n: asdict(t) | {"samples": len(samples[n])} for n, t in times.items()},
        "speedup": asdict(speedup),
        "bytes_of_weights": size,
        "share_of_bandwidth": shares,
        "floor_seconds": size / ceiling,
        "layer_errors": {name: [each.median, each.worst] for name, each in errors.items()},
        "score_errors": {name: asdict(error) for name, error in ends.items()},
        "faults": wrong,
    }
    summary = f"{decoder.layers} layers, {verdict}; {told}; {speedup.median:.2f} times as fast"
    return Outcome(not wrong, summary, figures)
