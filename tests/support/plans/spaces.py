"""The space of all legal schedules of a template."""

from typing import Any

from wpk.problems import Problem
from wpk.schedules import ScheduleTemplate
from wpk.search.searchers.space import Rows, SearchSpace
from wpk.targets import Target


def whole_space(
    problem: Problem, template: ScheduleTemplate[Any, Any], target: Target, rows: Rows | None = None
) -> SearchSpace:
    """All that are legal for a problem, or those of some rows."""
    _, columns = template.space(problem, target)
    if rows is not None:
        columns = {name: values[rows] for name, values in columns.items()}
    return SearchSpace(template.schedule_type, columns, problem.features())
