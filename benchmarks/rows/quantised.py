"""Quantised ResNet-50 and BERT-base: right beside ONNX Runtime, and how long they take beside our fp16.

Each row tunes two plans at one budget: of the network between QuantizeLinear and DequantizeLinear, and of the network
as it was, both asked for fp16. What the first gives is compared with ONNX Runtime on the same file, its rewriting
left out. A quantised network turns a rounding of the last place into a whole step where a number lies in front of a
tie, so that its outputs are allowed a multiple of what ONNX Runtime's own move by where only constants and inputs are
rounded to fp16. Where that is as much as the quantisation itself changes, whole outputs cannot tell one from the
other, and the figures say so: then the checks of single operators decide, each on what those before it gave.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from subjects.quantised import FORMS, NETWORKS, PLAIN, Network, rounded

from rows.base import BENCHMARKS, Context, Outcome, Row, microseconds
from rows.networks import Median
from rows.side_by_side import time_starts
from rows.tuned import plans_folder
from wpk.backends import open_gpu
from wpk.checks.limits import BLIND, LIMITS, ROUNDING_FACTOR, OutputDistance
from wpk.checks.model_check import output_error
from wpk.dtypes import Precision
from wpk.engine import Engine
from wpk.execution import Replay
from wpk.graph_passes import open_session, run_session
from wpk.plan import Plan
from wpk.plan.plan import Outcome as Found
from wpk.plan.plan_file import read_plan
from wpk.report.plans.precision import precision_of

Arrays = Mapping[str, NDArray[Any]]

QUANTISED, OURS_FP16 = "quantised", "our fp16"
CASES = tuple((NETWORKS[name], form) for name, form in product(NETWORKS, FORMS) if form != PLAIN)

DRAWS = 3
"""Inputs that outputs are compared on; calibration saw none of them."""

_ROUNDS, _SEED = 3, 1000


@dataclass(frozen=True)
class Compared:
    """Errors of an output beside ONNX Runtime's on the quantised file, the largest over all inputs.

    Attributes:
        engine: Of the quantised plan.
        moved: Of ONNX Runtime, where constants and inputs are rounded to fp16.
        plain: Of ONNX Runtime on the network as it was: what quantisation changed.
    """

    engine: OutputDistance
    moved: OutputDistance
    plain: OutputDistance

    @property
    def is_right(self) -> bool:
        """Whether the engine is no further off than roundings explain."""
        limit = LIMITS[Precision.FP16].widened(self.moved, ROUNDING_FACTOR)
        return self.engine.median <= limit.median and self.engine.worst <= limit.worst

    @property
    def tells(self) -> bool:
        """Whether an engine that left quantisation out, or gave anything at all, would not be called right."""
        limit = LIMITS[Precision.FP16].widened(self.moved, ROUNDING_FACTOR)
        is_blind = limit.median >= BLIND.median or limit.worst >= BLIND.worst
        return not is_blind and (self.plain.median > limit.median or self.plain.worst > limit.worst)


@dataclass(frozen=True)
class Proof:
    """What was checked when the plan was made.

    Attributes:
        operators: Steps of the plan.
        right: How many were executed, and right beside float64.
        failed: Checks that failed, of single operators and of the whole.
        products: Convolutions and matrix products.
        instructions: Instructions of tensor cores in the machine code, by kind.
        of_bytes: How many products multiply 8-bit numbers as they lie.
    """

    operators: int
    right: int
    failed: tuple[str, ...]
    products: int
    instructions: dict[str, int]
    of_bytes: int

    @classmethod
    def of(cls, plan: Plan) -> Proof:
        """Of a plan."""
        checks = [check for step in plan.steps for check in step.evidence.checks]
        right = sum(
            bool(step.evidence.checks) and all(c.outcome is Found.OK for c in step.evidence.checks)
            for step in plan.steps
        )
        failed = tuple(f"{c.name}: {c.detail}" for c in (*checks, *plan.checks) if c.failed)
        facts = precision_of(plan)
        products = sum(s.operator.problem.matrix_precision is not None for s in plan.steps)
        return cls(
            len(plan.steps),
            right,
            failed,
            products,
            facts.instructions,
            facts.of_bytes + facts.of_float8,
        )


def rows() -> list[Row]:
    """One a network and form, behind one a network that makes the plan they are compared with."""
    made = "the plan in fp16 that quantised networks are compared with"
    plain = [
        Row(f"quantised.{name}.plain", made, partial(_make_plain, network))
        for name, network in NETWORKS.items()
    ]
    claim = "a quantised network beside ONNX Runtime's numbers and our fp16's time"
    return plain + [
        Row(f"quantised.{network.name}.{form}", claim, partial(_measure, network, form))
        for network, form in CASES
    ]


def _make_plain(network: Network, context: Context) -> Outcome:
    plan = _plan(network, PLAIN, context)
    return Outcome(True, f"{len(read_plan(plan).plan.steps)} operators", {"plan": plan.name})


def _measure(network: Network, form: str, context: Context) -> Outcome:
    plans = {
        QUANTISED: read_plan(_plan(network, form, context)),
        OURS_FP16: read_plan(_plan(network, PLAIN, context)),
    }
    feeds = [network.inputs(_SEED + number) for number in range(DRAWS)]
    samples: dict[str, tuple[float, ...]] = dict.fromkeys(plans, ())
    outputs: list[Arrays] = []
    with open_gpu() as device:
        for _ in range(_ROUNDS):
            with (
                Engine(plans[QUANTISED], device) as ours,
                Engine(plans[OURS_FP16], device) as plain,
            ):
                outputs = [dict(ours.run(feed)) for feed in feeds]
                plain.run(feeds[0])
                starts: dict[str, Replay] = {
                    QUANTISED: ours.bind().replay,
                    OURS_FP16: plain.bind().replay,
                }
                for name, timing in time_starts(device, starts).items():
                    samples[name] += timing.seconds
    files = [model_file(network, each, context) for each in (form, PLAIN)]
    return judge(samples, compared(*files, feeds, outputs), Proof.of(plans[QUANTISED].plan))


def compared(
    quantised: Path, plain: Path, feeds: Sequence[Arrays], outputs: Sequence[Arrays]
) -> dict[str, Compared]:
    """Compare outputs with ONNX Runtime's.

    Args:
        quantised: The file that the outputs are of.
        plain: The network as it was.
        feeds: Inputs by name, each of a run.
        outputs: What the engine gave in each.
    """
    model = onnx.load(quantised)
    right = _runtime(model, feeds)
    others = {
        "engine": outputs,
        "moved": _runtime(rounded(model), [_as_fp16(feed) for feed in feeds]),
        "plain": _runtime(onnx.load(plain), feeds),
    }
    return {
        name: Compared(**{who: _largest(runs, right, name) for who, runs in others.items()})
        for name in right[0]
    }


def _runtime(model: onnx.ModelProto, feeds: Sequence[Arrays]) -> list[Arrays]:
    session = open_session(model.SerializeToString())
    names = [each.name for each in session.get_outputs()]
    return [dict(zip(names, run_session(session, feed, names), strict=True)) for feed in feeds]


def _as_fp16(feed: Arrays) -> Arrays:
    return {
        name: array.astype(np.float16).astype(array.dtype) if array.dtype.kind == "f" else array
        for name, array in feed.items()
    }


def _largest(runs: Sequence[Arrays], right: Sequence[Arrays], name: str) -> OutputDistance:
    errors = [output_error(a[name], b[name]) for a, b in zip(runs, right, strict=True)]
    # NaN is larger than all.
    return OutputDistance(
        float(np.max([each.median for each in errors])),
        float(np.max([each.worst for each in errors])),
    )


def judge(
    samples: Mapping[str, Sequence[float]], errors: Mapping[str, Compared], proof: Proof
) -> Outcome:
    """Whether the quantised engine is right; its time is told, and held to nothing.

    Args:
        samples: Seconds of one inference of both plans.
        errors: Of each output.
        proof: What was checked when the plan was made.
    """
    times = {name: Median.of(seconds) for name, seconds in samples.items()}
    speedup = times[QUANTISED].speedup_over(times[OURS_FP16])
    faults = [f"output '{name}' is off" for name, each in errors.items() if not each.is_right]
    faults += proof.failed
    if proof.right < proof.operators:
        faults.append(f"{proof.operators - proof.right} operators were not found right")
    tells = all(each.tells for each in errors.values())
    told = ", ".join(f"{name} {microseconds(t.median_seconds)}" for name, t in times.items())
    figures: dict[str, Any] = {
        "times": {n: asdict(t) | {"samples": len(samples[n])} for n, t in times.items()},
        "speedup over our fp16": asdict(speedup),
        "errors": {name: asdict(each) for name, each in errors.items()},
        "whole outputs tell": tells,
        "proof": asdict(proof),
        "faults": faults,
    }
    worst = max(each.engine.worst for each in errors.values())
    parts = [
        f"{told}, {speedup.median:.2f} times as fast",
        f"{proof.of_bytes} of {proof.products} products as 8-bit numbers",
        f"errors up to {worst:.1e}" + ("" if tells else ", as roundings make them"),
        *(f"WRONG: {fault}" for fault in faults[:1]),
    ]
    return Outcome(not faults, "; ".join(parts), figures)


def _plan(network: Network, form: str, context: Context) -> Path:
    """The network's plan: the one that another row wrote, or a new one."""
    kept = plans_folder(context) / f"quantised.{network.name}.{form}.plan"
    if kept.is_file():
        return kept
    fresh = context.folder / f"{form}.plan"
    what = ["optimize", model_file(network, form, context), "-o", fresh, "--precision", "fp16"]
    how = ["--effort", context.effort, "--budget", context.budget, "--cache", context.store]
    context.wpk(*what, "--fallback", "off", "--check", "quick", *how)
    kept.parent.mkdir(parents=True, exist_ok=True)
    os.replace(fresh, kept)
    return kept


def model_file(network: Network, form: str, context: Context) -> Path:
    """The network in one of `FORMS`, written in a process of its own where that has not been done."""
    path = context.store / "networks" / f"quantised.{network.name}.{form}.onnx"
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = context.folder / f"{form}.onnx"
        script = str(BENCHMARKS / "subjects" / "quantised.py")
        context.run([sys.executable, script, network.name, form, str(fresh)])
        os.replace(fresh, path)
    return path
