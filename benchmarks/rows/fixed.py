"""The partition that is found over the one that was fixed before forms competed, whole engines, by today's kernels.

Each row compares one network's two engines in turns (`rows.fixed_engines` says how they are tuned); `fixed.mean` holds all of
them to a mean. Which form has the fixed partition, `zoo.fixed` knows.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from exporters.inputs import draw_arrays
from numpy.typing import NDArray
from zoo.catalogue import find
from zoo.fixed import FixedForm, fixed_partitions

from rows.base import Context, Outcome, Row, RowError, microseconds
from rows.fixed_engines import FormsHere, Tuner, plan_of
from rows.goals import Goal, as_figures, geometric_mean
from rows.networks import ROUNDS, Median, is_right, largest_error
from rows.plan_operators import plan_figures
from rows.result_file import Record, figures_of
from rows.side_by_side import time_starts
from rows.tuned import INPUT_SEED
from rows.zoo import HALF, ZooCase
from wpk.backends import open_gpu
from wpk.checks.limits import OutputDistance
from wpk.dtypes import Precision
from wpk.engine import Engine
from wpk.graph_passes import open_session, run_session
from wpk.plan.measurement import Ratio
from wpk.plan.plan_file import read_plan

FIXED, FOUND, TOOL = "fixed", "found", "found, as users have it"
"""The engines: of the fixed form; of the found form, chosen by the same knowledge; as the whole run left it."""

LEAST_NETWORKS = 8
"""At batch 1, and as many at a larger one."""

WHAT = "speedup of the found partition over the fixed one"
LEAST = Goal(WHAT, 0.99)
MEAN = Goal("geometric mean of these speedups", 1.05)

SAME = Ratio(1.0, 1.0, 1.0)
"""Where both partitions are the same."""

Samples = Mapping[str, Sequence[float]]


@dataclass(frozen=True)
class Partitions:
    """What was compared.

    Attributes:
        evaluated: Partitions that the tool's run compared.
        operators: Of each engine's form, by the engine.
        only_then: Operators of the fixed partition that the form which stands for it has not, in words.
        only_here: Operators that it has in their place.
        skipped: Names of the passes that it leaves out.
    """

    evaluated: int
    operators: Mapping[str, int]
    only_then: Sequence[str] = ()
    only_here: Sequence[str] = ()
    skipped: Sequence[str] = ()


def cases() -> dict[ZooCase, FixedForm]:
    """Every network and batch whose fixed partition is known."""
    forms = fixed_partitions().forms
    return {ZooCase(each.network, Precision.FP16, each.batch): each for each in forms}


def rows() -> list[Row]:
    """One a network and batch, and one over all of them."""
    claim = "the partition found beside the one that was fixed before forms competed, whole engines"
    each = [
        Row(f"fixed.{case}", claim, partial(_measure, case, form), goals=(LEAST,))
        for case, form in cases().items()
    ]
    together = "the partitions found over the fixed ones, at batch 1 and at a large batch"
    return [*each, Row("fixed.mean", together, _judge_rows, is_last=True, goals=(MEAN, LEAST))]


def _measure(case: ZooCase, form: FixedForm, context: Context) -> Outcome:
    begun, tuner = time.perf_counter(), Tuner(case, context)
    path = tuner.found()
    tool, seconds = plan_of(path), {"found": time.perf_counter() - begun}
    forms = FormsHere.of(case.model(context), form, tool.provenance.changed_sites)
    partitions = Partitions(
        1 if tool.forms is None else tool.forms.partitions,
        {
            FIXED: len(forms.fixed.program.operators),
            FOUND: len(forms.found.program.operators),
        },
        form.only_then,
        form.only_here,
        form.skipped,
    )
    told: dict[str, Any] = {
        "taken_back": list(tool.provenance.changed_sites),
        "chosen": None if tool.measurement is None else tool.measurement.chosen,
        **plan_figures(tool),
    }
    if forms.are_same:
        return _told(same(partitions), told | {"seconds": seconds})
    plans = {TOOL: path}
    for name, tune in (
        (FIXED, partial(tuner.fixed, form)),
        (FOUND, partial(tuner.found_again, forms)),
    ):
        begun = time.perf_counter()
        plans[name] = tune()
        seconds[name] = time.perf_counter() - begun
    begun = time.perf_counter()
    samples, errors = _side_by_side(case, case.model(context), plans)
    seconds["side by side"] = time.perf_counter() - begun
    return _told(judge(samples, errors, partitions), told | {"seconds": seconds})


def _told(outcome: Outcome, more: Mapping[str, Any]) -> Outcome:
    return Outcome(outcome.passed, outcome.summary, {**more, **outcome.figures})


def _side_by_side(
    case: ZooCase, model: Path, plans: Mapping[str, Path]
) -> tuple[Samples, dict[str, OutputDistance]]:
    """Times of engines in turns, each loaded anew `ROUNDS` times, and their errors beside ONNX Runtime in fp32."""
    sizes = {"batch": case.batch}
    given = draw_arrays(find(case.network).architecture.inputs, sizes, INPUT_SEED)
    right = run_session(open_session(str(model)), given)
    samples: dict[str, tuple[float, ...]] = dict.fromkeys(plans, ())
    outputs: dict[str, Sequence[NDArray[Any]]] = {}
    with open_gpu() as device:
        for _ in range(ROUNDS):
            with ExitStack() as held:
                engines = {
                    name: held.enter_context(Engine(read_plan(path), device))
                    for name, path in plans.items()
                }
                for name, engine in engines.items():
                    outputs[name] = tuple(engine.run(given).values())
                starts = {name: engine.bind().replay for name, engine in engines.items()}
                for name, timing in time_starts(device, starts).items():
                    samples[name] += timing.seconds
    return samples, {name: largest_error(found, right) for name, found in outputs.items()}


def same(partitions: Partitions) -> Outcome:
    """The outcome where both partitions are one: nothing is measured."""
    judged = LEAST.judged_ratio(SAME)
    figures = {"speedup": asdict(SAME), "right": True, "same": True}
    figures |= {"partitions": partitions.evaluated, "operators": dict(partitions.operators)}
    operators = partitions.operators[FOUND]
    summary = f"the found partition is the fixed one, of {operators} operators; {judged}"
    return Outcome(True, summary, figures | _apart(partitions) | as_figures([judged]))


def judge(
    samples: Samples, errors: Mapping[str, OutputDistance], partitions: Partitions
) -> Outcome:
    """Whether the found partition's engine is as fast as the fixed one's, and all are right.

    Args:
        samples: Seconds of one inference of each engine.
        errors: Of each, beside ONNX Runtime in fp32.
        partitions: What was compared.
    """
    times = {name: Median.of(seconds) for name, seconds in samples.items()}
    speedup = times[FOUND].speedup_over(times[FIXED])
    judged = LEAST.judged_ratio(speedup)
    wrong = [
        name
        for name, error in errors.items()
        if not is_right(Precision.FP16, error, [e for other, e in errors.items() if other != name])
    ]
    figures: dict[str, Any] = {
        "times": {n: asdict(t) | {"samples": len(samples[n])} for n, t in times.items()},
        "speedup": asdict(speedup),
        "right": not wrong,
        "same": False,
        "errors": {name: asdict(error) for name, error in errors.items()},
        "partitions": partitions.evaluated,
        "operators": dict(partitions.operators),
    }
    told = ", ".join(f"{name} {microseconds(t.median_seconds)}" for name, t in times.items())
    said = f"; WRONG: {', '.join(wrong)}" if wrong else ""
    passed = judged.reached and not wrong
    figures |= _apart(partitions) | as_figures([judged])
    return Outcome(passed, f"{told}; {judged}{said}", figures)


def _apart(partitions: Partitions) -> dict[str, Any]:
    apart = {"only_then": list(partitions.only_then), "only_here": list(partitions.only_here)}
    return {"fixed_form_differs": apart, "fixed_form_skips": list(partitions.skipped)}


def _judge_rows(context: Context) -> Outcome:
    return judge_all(context.records)


def judge_all(records: Mapping[str, Record]) -> Outcome:
    """Hold all networks together to the goals.

    Raises:
        RowError: Too few have been measured.
    """
    found = {case: figures for case in cases() if (figures := figures_of(records, f"fixed.{case}"))}
    for many in (False, True):
        measured = len({case.network for case in found if (case.batch > 1) is many})
        if measured < LEAST_NETWORKS:
            where = "at a large batch" if many else "at batch 1"
            raise RowError(
                f"{measured} networks are measured {where}, at least {LEAST_NETWORKS} are asked for"
            )
    ratios = {f"fixed.{case}": counted(figures) for case, figures in found.items()}
    least = min(ratios.values(), key=lambda ratio: ratio.median)
    mean = geometric_mean([*ratios.values()])
    judged = [MEAN.judged_ratio(mean), LEAST.judged_ratio(least)]
    means = {
        batches: geometric_mean([counted(f) for c, f in found.items() if (c.batch > 1) is many])
        for batches, many in (("batch 1", False), ("large batch", True))
    }
    wrong = [f"fixed.{case}" for case, figures in found.items() if not figures["right"]]
    partitions = sum(figures["partitions"] for figures in found.values())
    figures: dict[str, Any] = {
        "speedups": {name: ratio.median for name, ratio in ratios.items()},
        "means": {batches: asdict(each) for batches, each in means.items()},
        "partitions": partitions,
        "same": [f"fixed.{case}" for case, figures in found.items() if figures["same"]],
        "wrong": wrong,
    }
    told = ", ".join(f"{each.median:.3f} at {batches}" for batches, each in means.items())
    summary = f"{'; '.join(map(str, judged))}; {told}; {partitions} partitions evaluated in {len(found)} runs"
    summary += f"; WRONG: {', '.join(wrong)}" if wrong else ""
    passed = all(each.reached for each in judged) and not wrong
    return Outcome(passed, summary, figures | as_figures(judged))


def counted(figures: Mapping[str, Any]) -> Ratio:
    """What a network counts: its speedup where the engines are right, else `HALF`."""
    return Ratio(**figures["speedup"]) if figures["right"] else HALF
