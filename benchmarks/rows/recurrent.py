"""Stacks of LSTM and GRU in fp16: the tuned engine beside cuDNN through PyTorch, interleaved in one process.

Both sides are CUDA graphs that follow each other on one stream. PyTorch's module has its weights in one
piece, as cuDNN asks for; input and output are fp16 there, and fp32 in the engine, which converts them itself.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from subjects import recurrent
from subjects.recurrent import Stack

from rows.base import Context, Outcome, Row, RowError, microseconds
from rows.goals import Goal, as_figures, geometric_mean
from rows.networks import OURS, Median
from rows.result_file import Record
from rows.side_by_side import time_starts
from rows.torch_baselines import WARM_UPS
from wpk.backends import open_gpu
from wpk.checks.limits import LIMITS
from wpk.checks.model_check import output_error
from wpk.dtypes import Precision
from wpk.engine import Engine
from wpk.execution import Replay
from wpk.plan.measurement import Ratio
from wpk.plan.plan_file import read_plan

BASELINE = "cuDNN through PyTorch"
STACKS = tuple(Stack(*each) for each in product(("LSTM", "GRU"), (256, 1024), (1, 32)))
LEAST = Goal(f"speedup over {BASELINE}", 1.0)
MEAN = Goal(f"geometric mean of speedups over {BASELINE}", 1.3)

ERROR_FACTOR = 2.0
"""What the engine's error may be of the baseline's, where that is beyond the limits."""

_ROUNDS, _SEED = 3, 1000


def rows() -> list[Row]:
    """One a stack, and one over all of them."""
    claim = "two recurrent layers of 50 steps in fp16 beside cuDNN through PyTorch"
    cases = [
        Row(f"recurrent.{each}", claim, partial(_measure, each), goals=(LEAST,)) for each in STACKS
    ]
    together = "all recurrent stacks together beside cuDNN through PyTorch"
    return [
        *cases,
        Row("recurrent.mean", together, _measure_mean, is_last=True, goals=(MEAN, LEAST)),
    ]


def _measure(stack: Stack, context: Context) -> Outcome:
    path, plan = context.folder / "model.onnx", context.folder / "model.plan"
    recurrent.write(stack, path)
    how = ["--effort", context.effort, "--budget", context.budget, "--cache", context.store]
    context.wpk("optimize", path, "-o", plan, "--precision", "fp16", *how)
    x = np.random.default_rng(_SEED).standard_normal(stack.shape).astype(np.float32)
    with open_gpu() as device:
        theirs = TorchRecurrent(stack, x, device.stream)
        outputs = {BASELINE: theirs.output()}
        samples: dict[str, tuple[float, ...]] = {OURS: (), BASELINE: ()}
        for _ in range(_ROUNDS):
            with Engine(read_plan(plan), device) as engine:
                outputs[OURS] = engine.run({"x": x})["y"]
                starts: dict[str, Replay] = {OURS: engine.bind().replay, BASELINE: theirs}
                for name, timing in time_starts(device, starts).items():
                    samples[name] += timing.seconds
    if not np.isfinite(outputs[BASELINE]).all():
        raise RowError("PyTorch gives values that are no numbers: nothing to compare with")
    chosen = [
        f"{step.operator.problem.words()}: {step.candidate}" for step in read_plan(plan).plan.steps
    ]
    return judge(samples, outputs, _in_float64(stack, x), chosen)


class TorchRecurrent:
    """torch's module in fp16, captured in a CUDA graph that is started on a given stream."""

    def __init__(self, stack: Stack, x: NDArray[np.float32], stream: int) -> None:
        """Warm up and capture."""
        import torch

        self._module = copy.deepcopy(recurrent.module(stack)).to("cuda", torch.float16)
        self._module.flatten_parameters()
        self._input = torch.from_numpy(x).to("cuda", torch.float16)
        self._stream = torch.cuda.ExternalStream(stream)
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.no_grad(), torch.cuda.stream(side):
            for _ in range(WARM_UPS):
                self._module(self._input)
        torch.cuda.current_stream().wait_stream(side)
        torch.cuda.synchronize()
        self._graph = torch.cuda.CUDAGraph()
        with torch.no_grad(), torch.cuda.graph(self._graph):
            self._output, _ = self._module(self._input)

    def replay(self) -> None:
        """Start it once."""
        import torch

        with torch.cuda.stream(self._stream):
            self._graph.replay()

    def output(self) -> NDArray[np.float32]:
        """What it gives."""
        import torch

        self.replay()
        torch.cuda.synchronize()
        array: NDArray[np.float32] = self._output.float().cpu().numpy()
        return array


def _in_float64(stack: Stack, x: NDArray[np.float32]) -> NDArray[np.float64]:
    """What is right."""
    import torch

    with torch.no_grad():
        y, _ = recurrent.module(stack).double()(torch.from_numpy(x).double())
    array: NDArray[np.float64] = y.numpy()
    return array


def judge(
    samples: Mapping[str, Sequence[float]],
    outputs: Mapping[str, NDArray[np.float32]],
    right: NDArray[np.float64],
    chosen: Sequence[str] = (),
) -> Outcome:
    """Whether the engine is no slower than the baseline, and as right.

    Args:
        samples: Seconds of one inference of both.
        outputs: What both gave.
        right: What is right.
        chosen: What computes each operator, for whoever reads the figures.
    """
    times = {name: Median.of(seconds) for name, seconds in samples.items()}
    speedup = times[OURS].speedup_over(times[BASELINE])
    goal = LEAST.judged_ratio(speedup)
    errors = {name: output_error(output, right) for name, output in outputs.items()}
    limit = LIMITS[Precision.FP16].widened(errors[BASELINE], ERROR_FACTOR)
    is_right = errors[OURS].median <= limit.median and errors[OURS].worst <= limit.worst
    told = ", ".join(f"{name} {microseconds(t.median_seconds)}" for name, t in times.items())
    wrong = "" if is_right else f"; WRONG: errors of {errors[OURS].worst:.1e}"
    figures: dict[str, Any] = {
        "times": {n: asdict(t) | {"samples": len(samples[n])} for n, t in times.items()},
        "speedup": asdict(speedup),
        "errors": {name: asdict(error) for name, error in errors.items()},
        "chosen": list(chosen),
    }
    return Outcome(
        goal.reached and is_right, f"{told}; {goal}{wrong}", figures | as_figures([goal])
    )


def _measure_mean(context: Context) -> Outcome:
    return judge_mean(context.records)


def judge_mean(records: Mapping[str, Record]) -> Outcome:
    """Hold all stacks together to the goals.

    Raises:
        RowError: One has not been measured.
    """
    missing = [str(s) for s in STACKS if "speedup" not in _figures(records, s)]
    if missing:
        raise RowError(f"not measured yet: {', '.join(missing)}")
    ratios = [Ratio(**_figures(records, stack)["speedup"]) for stack in STACKS]
    least = min(ratios, key=lambda ratio: ratio.median)
    judged = [MEAN.judged_ratio(geometric_mean(ratios)), LEAST.judged_ratio(least)]
    summary = "; ".join(map(str, judged))
    return Outcome(all(each.reached for each in judged), summary, as_figures(judged))


def _figures(records: Mapping[str, Record], stack: Stack) -> Mapping[str, Any]:
    record = records.get(f"recurrent.{stack}", {})
    figures: Mapping[str, Any] = record.get("figures", {})
    return figures
