"""A learned model of costs beside the analytical one: how far the estimate is off, from measured kernels.

    learned seconds = estimate * exp(correction(what the schedule makes the GPU do))

The correction is a gradient-boosted ensemble of trees (scikit-learn's), kept as ONNX and evaluated by ONNX
Runtime, so that nothing is needed to use it which wpk does not have already. It sees the numbers that
templates tell the analytical model, not parameters: so what it learnt of one problem holds for others. It
speaks of the templates that it was taught, on GPUs of the same compute capability; elsewhere the estimate
stands. `benchmarks/train_cost_model.py` trains it; the file says on what.
"""

from __future__ import annotations

from functools import cache, cached_property
from importlib.resources import files

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from wpk.dtypes import Precision
from wpk.performance import Bound, Columns, Floats, estimate, extended_pul, resident_blocks
from wpk.performance import bound as bound_of
from wpk.problems import Convolution, Matmul, Problem
from wpk.search.models.load_costs import Template
from wpk.targets import Target

FILE = "learned_costs.onnx"

TAUGHT = (9, 0)
"""Compute capability of the GPU that it was taught on; it says nothing of others."""

_COUNTS = (
    *("blocks", "threads", "shared_bytes", "registers", "block_flops", "thread_flops"),
    *("block_transactions", "thread_loads", "store_bytes", "steps", "stages", "combined_bytes"),
    *("thread_slots", "chain_cycles", "turns"),
)
"""Of `wpk.performance.work.Work`, the numbers whose logarithms are inputs."""

_FLAGS = ("in_cluster", "early", "by_warpgroups")


def inputs_of(problem: Problem, template: Template, target: Target, columns: Columns) -> Floats:
    """Return what the model is told of schedules: (schedules, numbers); the first is the estimate's logarithm.

    Bank conflicts are not counted: whole spaces are too many for that.
    """
    work, least = template.work(problem, columns, target), bound_of(problem, target)
    seconds = estimate(work, least, target)
    count = len(seconds)
    resident = resident_blocks(work, target)
    waves = work.blocks / np.maximum(1, resident * target.sm_count)
    score = extended_pul(work, least.operations, target).score
    numbers = [np.log2(1.0 + np.asarray(getattr(work, name), np.float64)) for name in _COUNTS]
    flags = [np.asarray(getattr(work, name), np.float64) for name in _FLAGS]
    unit = 0 if work.unit is None else 1
    about: list[Floats] = [np.log2(seconds), np.log2(seconds / least.seconds), score]
    about += [resident, waves, np.ceil(waves) / np.maximum(waves, 1e-9)]
    about += [np.minimum(work.blocks / target.sm_count, 8.0)]
    constants = (*_of_problem(least), float(unit), float(work.element_bytes))
    inputs = [*about, *(np.full(count, each) for each in constants), *numbers, *flags]
    return np.stack([np.broadcast_to(each, (count,)) for each in inputs], axis=1)


def _of_problem(least: Bound) -> tuple[float, ...]:
    return (
        float(np.log2(least.seconds)),
        float(np.log2(1.0 + least.bytes)),
        float(np.log2(1.0 + least.operations)),
    )


class LearnedCosts:
    """These costs are predicted by a model of corrections."""

    def __init__(self, model: bytes) -> None:
        """Take the ONNX model: from ``inputs`` (schedules, numbers) of fp32 to a correction each."""
        self._model = model

    @cached_property
    def _session(self) -> onnxruntime.InferenceSession:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        return onnxruntime.InferenceSession(self._model, options, ["CPUExecutionProvider"])

    @cached_property
    def provenance(self) -> dict[str, str]:
        """What it was taught on, as the file says."""
        return dict(self._session.get_modelmeta().custom_metadata_map)

    def knows(self, template: Template, precision: Precision) -> bool:
        """Tell whether it was taught a template's schedules at a precision; bf16 is multiplied as fast as fp16."""
        taught = Precision.FP16 if precision is Precision.BF16 else precision
        said = self.provenance
        names, precisions = (said[key].split(", ") for key in ("templates", "precisions"))
        return template.name in names and taught in precisions

    def seconds(
        self, problem: Problem, template: Template, target: Target, columns: Columns
    ) -> Floats:
        """Return the predicted seconds of schedules."""
        inputs = inputs_of(problem, template, target, columns)
        known: NDArray[np.bool_] = np.asarray(np.isfinite(inputs).all(axis=1))
        fed = np.where(known[:, None], inputs, 0.0).astype(np.float32)
        (corrections,) = self._session.run(None, {"inputs": fed})
        told: Floats = np.exp2(inputs[:, 0]) * np.exp(corrections.reshape(-1).astype(np.float64))
        return np.where(known, told, np.inf)


@cache
def _shipped() -> LearnedCosts:
    return LearnedCosts(files("wpk.search.models").joinpath(FILE).read_bytes())


def learned_seconds(
    problem: Problem, template: Template, target: Target, columns: Columns
) -> Floats | None:
    """Return what the model that comes with wpk predicts of schedules; None where it says nothing of them."""
    if not isinstance(problem, Convolution | Matmul) or target.capability != TAUGHT:
        return None
    if not _shipped().knows(template, problem.precision):
        return None
    return _shipped().seconds(problem, template, target, columns)
