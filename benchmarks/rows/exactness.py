"""Strict fp32 beside PyTorch's: errors of whole networks, with the module in float64 as what is right.

The plan is what the models choose without measuring, so that a row takes a minute. The exporter folds
batch normalisations in fp32: what that takes away from the module is counted as the engine's.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from export import NETWORKS, draw, exported_module
from numpy.typing import NDArray

from rows.base import Context, Outcome, Row
from rows.goals import Goal, as_figures
from rows.networks import BATCHES, OURS
from rows.torch_baselines import USUAL, be_strict, compiled, in_float64, keep_compiled
from rows.tuned import Case
from wpk.checks.model_check import OutputDistance, output_error
from wpk.dtypes import Precision
from wpk.engine import load

GOAL = Goal("median error over the best of PyTorch", 1.1, at_most=True)

DRAWS = 4
"""Inputs: the median of one image's thousand outputs moves by a tenth from image to image."""

_SEED = 2000
"""Of the first input: none that anything else draws."""


def rows() -> list[Row]:
    """One a convolutional network and batch."""
    claim = "errors of strict fp32 beside PyTorch, eager and compiled"
    cases = [
        Case(name, Precision.FP32, batch)
        for batch in BATCHES
        for name, network in NETWORKS.items()
        if not network.tokens
    ]
    return [Row(f"exactness.{c}", claim, partial(_measure, c), goals=(GOAL,)) for c in cases]


def _measure(case: Case, context: Context) -> Outcome:
    os.environ.update(keep_compiled(context.store / "torch"))
    network = NETWORKS[case.network]
    model, plan = context.exported(case.network), context.folder / "static.plan"
    what = ["optimize", model, "-o", plan, "--shapes", network.shapes(case.batch)]
    how = ["--search", "static", "--check", "off", "--cache", context.store]
    context.wpk(*what, *how)
    module = exported_module(case.network, model)
    inputs = [draw(network, case.batch, _SEED + seed) for seed in range(DRAWS)]
    be_strict()
    outputs = {way: _by_torch(module, inputs, way) for way in USUAL}
    outputs[OURS] = _by_plan(plan, network.input, inputs)
    right = np.concatenate([in_float64(module, [each], "cuda")[0] for each in inputs])
    return judge({name: output_error(output, right) for name, output in outputs.items()})


def judge(errors: Mapping[str, OutputDistance]) -> Outcome:
    """Whether the engine's median error is that of the best baseline, or hardly more.

    Args:
        errors: Of `rows.networks.OURS` and of every baseline.
    """
    best = min(errors.keys() - {OURS}, key=lambda name: errors[name].median)
    goal = GOAL.judged(errors[OURS].median / errors[best].median)
    told = ", ".join(f"{name} {error.median:.2e}" for name, error in errors.items())
    figures: dict[str, Any] = {
        "best_baseline": best,
        "errors": {name: asdict(error) for name, error in errors.items()},
    }
    return Outcome(goal.reached, f"{told}; {goal}", figures | as_figures([goal]))


def _by_plan(plan: Path, name: str, inputs: Sequence[Any]) -> NDArray[Any]:
    with load(plan, device="gpu") as engine:
        found = [next(iter(engine.run({name: each.numpy()}).values())) for each in inputs]
    return np.concatenate(found)


def _by_torch(module: Any, inputs: Sequence[Any], way: str) -> NDArray[Any]:
    import torch

    call = compiled(copy.deepcopy(module).to("cuda", memory_format=torch.channels_last), way)
    with torch.no_grad():
        placed = (x.to("cuda", memory_format=torch.channels_last) for x in inputs)
        return np.concatenate([call(each).float().cpu().numpy() for each in placed])
