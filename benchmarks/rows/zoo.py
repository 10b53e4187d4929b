"""The zoo: networks of full size, one a family, and others that a commit draws, beside PyTorch.

Each is tuned within 60 seconds from an empty store of its own: no network profits from what another measured.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from zoo.catalogue import DRAWN_PREFIX, find, zoo
from zoo.drawing import DRAWN, kept
from zoo.exporting import draw, exported_module

from rows.base import BENCHMARKS, Context, Outcome, Row, RowError
from rows.goals import Goal, as_figures, geometric_mean
from rows.networks import WHAT, tuned_beside
from rows.result_file import Record
from rows.torch_baselines import USUAL
from rows.tuned import INPUT_SEED, Case, RefusedError, Subject
from wpk.dtypes import Precision
from wpk.plan.measurement import Ratio

BUDGET = "60s"
"""Of tuning each network, from its file to the last check."""

HALF = Ratio(0.5, 0.5, 0.5)
"""What a network counts whose engine is refused, inconclusive or wrong."""

MEAN = "geometric mean of speedups over the best of PyTorch"


class ZooCase(Case):
    """A network of the zoo, or one that was drawn, at a precision and a batch, which its file has fixed."""

    def model(self, context: Context) -> Path:
        """The network's file, exported where that has not been done."""
        path = context.store / "networks" / "zoo" / f"{self.network}.b{self.batch}.onnx"
        if not path.is_file():
            script = BENCHMARKS / "export_zoo.py"
            what = [self.network, str(path), "--batch", str(self.batch)]
            context.run([sys.executable, str(script), *what])
        return path

    def subject(self, context: Context) -> Subject:
        """The module that the file was exported from, and inputs of this batch."""
        architecture = find(self.network).architecture
        module = exported_module(architecture, self.model(context))
        return Subject(module, draw(architecture, self.batch, INPUT_SEED))

    def shape_options(self) -> list[str]:
        """None: the file has no free sizes."""
        return []

    def cache(self, context: Context) -> Path:
        """A folder of its own, which is empty when the network is tuned for the first time."""
        return context.store / "zoo" / str(self)


@dataclass(frozen=True)
class Together:
    """Rows that are held to goals together.

    Attributes:
        name: Of the row that does so.
        claim: What it shows.
        cases: What the rows measure.
        mean: Asked of the geometric mean of all speedups.
        least: Asked of the least, and of each row.
    """

    name: str
    claim: str
    cases: tuple[ZooCase, ...]
    mean: float
    least: float

    @property
    def each(self) -> Goal:
        """Of one row."""
        return Goal(WHAT, self.least)

    @property
    def goals(self) -> tuple[Goal, Goal]:
        """Of all together."""
        return Goal(MEAN, self.mean), self.each


def groups() -> list[Together]:
    """The whole zoo; those that the commit chose, in strict fp32 and at a large batch; those that it drew."""
    draw = kept()
    return _groups(*((), ()) if draw is None else (draw.chosen, draw.drawn))


def _groups(chosen: Sequence[str], drawn: Sequence[str]) -> list[Together]:
    networks, fp16, fp32 = zoo(), Precision.FP16, Precision.FP32
    large = [(name, networks[name].large_batch) for name in chosen]
    return [
        Together(
            "zoo.mean.fp16.b1",
            "the whole zoo in fp16 at batch 1 beside PyTorch",
            tuple(ZooCase(name, fp16, 1) for name in networks),
            2.2,
            1.15,
        ),
        Together(
            "zoo.mean.fp32.b1",
            "the chosen of the zoo in strict fp32 at batch 1 beside PyTorch",
            tuple(ZooCase(name, fp32, 1) for name in chosen),
            2.5,
            1.15,
        ),
        Together(
            "zoo.mean.fp16.large",
            "the chosen of the zoo in fp16 at batch 32, or what fits, beside PyTorch",
            tuple(ZooCase(name, fp16, batch) for name, batch in large),
            1.45,
            1.0,
        ),
        Together(
            "zoo.mean.drawn",
            "networks drawn of timm's list in fp16 at batch 1 beside PyTorch",
            tuple(ZooCase(DRAWN_PREFIX + name, fp16, 1) for name in drawn),
            1.9,
            1.0,
        ),
    ]


def cases() -> dict[ZooCase, Goal]:
    """Every network of the zoo in every way, and what was drawn; with what is asked of each alone.

    Which of them are held to a mean, `groups` says.
    """
    draw = kept()
    everything = _groups(tuple(zoo()), () if draw is None else draw.drawn)
    return {case: group.each for group in everything for case in group.cases}


def rows() -> list[Row]:
    """One a network, precision and batch, and one a group of them."""
    claim = "tuned within 60 seconds from an empty store, beside PyTorch, eager and compiled"
    found = [
        Row(f"zoo.{case}", claim, partial(_measure, case, goal), goals=(goal,))
        for case, goal in cases().items()
    ]
    together = [
        Row(each.name, each.claim, partial(_judge_rows, each.name), is_last=True, goals=each.goals)
        for each in groups()
    ]
    return found + together


def _measure(case: ZooCase, goal: Goal, context: Context) -> Outcome:
    try:
        outcome = tuned_beside(case, USUAL, goal, replace(context, budget=BUDGET))
    except RefusedError as error:
        return refused(goal, str(error))
    if outcome.figures["plan"]["inconclusive"]:
        return replace(outcome, passed=False, summary=f"{outcome.summary}; INCONCLUSIVE")
    return outcome


def refused(goal: Goal, why: str) -> Outcome:
    """The outcome where wpk makes no engine."""
    figures = {"refused": why, "speedup": asdict(HALF)} | as_figures([goal.judged_ratio(HALF)])
    return Outcome(False, f"refused: {(why.splitlines() or [''])[-1]}", figures)


def _judge_rows(name: str, context: Context) -> Outcome:
    (group,) = (each for each in groups() if each.name == name)
    return judge(group, context.records)


def judge(group: Together, records: Mapping[str, Record]) -> Outcome:
    """Hold the rows of a group together to its goals.

    Raises:
        RowError: One has not been measured, or nothing has been drawn.
    """
    if not group.cases:
        raise RowError(f"nothing is drawn: there is no {DRAWN.name} (benchmarks/draw_zoo.py)")
    names = [f"zoo.{case}" for case in group.cases]
    missing = [name for name in names if "figures" not in records.get(name, {})]
    if missing:
        raise RowError(f"not measured yet: {', '.join(missing)}")
    ratios = {name: counted(records[name]["figures"]) for name in names}
    least = min(ratios.values(), key=lambda ratio: ratio.median)
    values = (geometric_mean(list(ratios.values())), least)
    judged = [goal.judged_ratio(ratio) for goal, ratio in zip(group.goals, values, strict=True)]
    ascending = sorted(ratios, key=lambda name: ratios[name].median)
    figures: dict[str, Any] = {
        "speedups": {name: ratios[name].median for name in names},
        "ascending": ascending,
        "halves": [name for name in ascending if ratios[name] == HALF],
    }
    worst = f"the least is {ascending[0]}"
    summary = f"{'; '.join(map(str, judged))}; {worst}"
    return Outcome(all(e.reached for e in judged), summary, figures | as_figures(judged))


def counted(figures: Mapping[str, Any]) -> Ratio:
    """What a row's network counts: its speedup where its engine is there and right, else `HALF`."""
    if "refused" in figures or not figures["right"] or figures["plan"]["inconclusive"]:
        return HALF
    return Ratio(**figures["speedup"])
