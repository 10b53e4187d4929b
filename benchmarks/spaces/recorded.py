"""Recorded parts of schedule spaces, as the studies replay them.

A *problem* here is all that was recorded of one: of each template a **kept** part, which production searches,
and a **grid**. Schedules of a part are in the order of the estimate.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from spaces.line_file import Header, Known, Values, read_lines
from spaces.problems import network_of
from wpk.candidate import Candidate, Maker
from wpk.performance import Columns, Floats
from wpk.problems import Problem
from wpk.schedules import TEMPLATE_OF, Schedule, ScheduleTemplate
from wpk.search.models import estimates
from wpk.search.models.learned import LearnedCosts
from wpk.targets import Target, find_target
from wpk.trial import Trial

Template = ScheduleTemplate[Problem, Schedule]


@dataclass(frozen=True)
class RecordedSpace:
    """A recorded space is what is known of one template for one problem.

    Attributes:
        name: Of the problem.
        problem: The problem.
        template: The template, of today.
        target: The GPU that was measured on.
        legal: How many schedules are legal.
        table: Values of the schedules that were recorded, one a row.
        costs: Seconds of each; infinity where it failed.
        estimates: Predicted seconds of each.
        kept: Rows that production searches, smallest estimate first.
        grid: Rows of the grid, smallest estimate first.
        learned: Seconds of each that a model predicts which was taught by other networks; None where there is none.
    """

    name: str
    problem: Problem
    template: Template
    target: Target
    legal: int
    table: NDArray[np.int64]
    trials: tuple[Trial, ...]
    estimates: Floats
    kept: NDArray[np.int64]
    grid: NDArray[np.int64]
    learned: Floats | None = None

    @property
    def key(self) -> str:
        """The names of the problem and of the template."""
        return f"{self.name}/{self.template.name}"

    @property
    def network(self) -> str:
        """Where the problem comes from."""
        return network_of(self.name)

    @cached_property
    def costs(self) -> Floats:
        """Seconds of each row; infinity where it failed."""
        return np.asarray([trial.cost for trial in self.trials])

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The parameters."""
        return tuple(name for name, _ in self.trials[0].candidate.configuration)

    def columns(self, rows: NDArray[np.int64]) -> Columns:
        """Return some of its schedules."""
        return columns_of(self.template, self.names, self.table[rows])

    def as_learned(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return some rows in the order of the learned costs.

        Raises:
            ValueError: There are none.
        """
        if self.learned is None:
            raise ValueError(f"{self.key} has no learned costs")
        return rows[np.argsort(self.learned[rows], kind="stable")]

    @cached_property
    def by_candidate(self) -> dict[Candidate, Trial]:
        """What was recorded of each candidate, with the parameters that its template has today."""
        columns = self.columns(np.arange(len(self.trials)))
        names = [field.name for field in fields(self.template.schedule_type)]
        values = zip(*(columns[name].tolist() for name in names), strict=True)
        maker = self.template.maker
        now = [Candidate(maker, tuple(zip(names, row, strict=True))) for row in values]
        return {c: replace(t, candidate=c) for c, t in zip(now, self.trials, strict=True)}


def read_spaces(folder: Path, models: Path | None = None) -> list[RecordedSpace]:
    """Return all spaces that a folder of records holds, those of today's templates.

    Args:
        folder: The records.
        models: Learned models, ``without-NETWORK.onnx`` each, as `train_cost_model.py` writes them.

    Raises:
        SystemExit: There are none.
    """
    known = read_lines(sorted([*folder.glob("spaces-*.jsonl"), *folder.glob("spaces-*.jsonl.xz")]))
    if not known.machines:
        raise SystemExit(f"there is no record in {folder}: see record_spaces.py")
    target = find_target(str(known.machines[0]["target"]))
    spaces = [_space(header, known, target) for header in known.headers.values()]
    found = [space for space in spaces if space is not None]
    return found if models is None else [_with_learned(space, models) for space in found]


def _with_learned(space: RecordedSpace, models: Path) -> RecordedSpace:
    model = LearnedCosts((models / f"without-{space.network}.onnx").read_bytes())
    columns = space.columns(np.arange(len(space.table)))
    told = model.seconds(space.problem, space.template, space.target, columns)
    return replace(space, learned=told)


def _space(header: Header, known: Known, target: Target) -> RecordedSpace | None:
    """A space with what was recorded of it; None where that is nothing."""
    problem, template = known.problem(header.problem), TEMPLATE_OF[header.template]
    trials = known.trials(header, Maker(header.template, header.version))
    if not trials:
        return None
    return make_space(
        header.problem,
        problem,
        template,
        target,
        header.legal,
        trials.values(),
        header.kept,
        header.grid,
    )


def columns_of(template: Template, names: Sequence[str], table: NDArray[np.int64]) -> Columns:
    """Return recorded schedules as columns, one for each parameter of today's template.

    Those that it has had since the record have the value that changes nothing: their default.
    """
    columns = dict(zip(names, table.T, strict=True))
    since = [field for field in fields(template.schedule_type) if field.name not in columns]
    return columns | {field.name: np.full(len(table), field.default) for field in since}


def make_space(
    name: str,
    problem: Problem,
    template: Template,
    target: Target,
    legal: int,
    trials: Iterable[Trial],
    kept: Sequence[Values],
    grid: Sequence[Values],
) -> RecordedSpace:
    """Return a space of some trials.

    Args:
        name: Of the problem.
        problem: The problem.
        template: The template.
        target: The GPU.
        legal: How many of its schedules are legal.
        trials: What was recorded.
        kept: Values of the schedules that production searches; those not recorded are left out.
        grid: Likewise of the grid.
    """
    trials = tuple(trials)
    values = [tuple(v for _, v in trial.candidate.configuration) for trial in trials]
    rows = {each: row for row, each in enumerate(values)}
    names = [name for name, _ in trials[0].candidate.configuration]
    table = np.asarray(values, np.int64)
    predicted = estimates(problem, template, target, columns_of(template, names, table))

    def ranked(part: Sequence[Values]) -> NDArray[np.int64]:
        found = np.asarray([rows[each] for each in part if each in rows], np.int64)
        return found[np.argsort(predicted[found], kind="stable")]

    return RecordedSpace(
        name, problem, template, target, legal, table, trials, predicted, ranked(kept), ranked(grid)
    )
