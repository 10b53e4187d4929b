"""What the shared memory loads of many schedules cost: schedules that load alike are counted once, whatever problems they are of."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import fields
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from wpk.performance import Columns, Floats, Rows, shared_cost
from wpk.problems import Problem
from wpk.schedules import Schedule, ScheduleTemplate

Template = ScheduleTemplate[Any, Any]

_Known = dict[int, tuple[float, float]]
"""COEF_bc and passes, by what tells loads apart."""

_MOST_CODES = 2**62


class LoadCosts:
    """What loads of a template's schedules cost, counted as they are asked for."""

    def __init__(self, problem: Problem, template: Template, columns: Columns) -> None:
        """Take the schedules; nothing is counted yet."""
        self._template, self._columns = template, columns
        self._accesses_of = template.accesses_of(problem)
        asked = list(template.access_keys(problem, columns).values())
        self._digits = [(values, int(values.max()) + 1) for values in asked]
        self._known: _Known = {}
        radices = tuple(radix for _, radix in self._digits)
        if prod(radices) >= _MOST_CODES or any(values.min() < 0 for values in asked):
            ranks = [np.unique(values, return_inverse=True) for values in asked]
            self._digits = [(places, len(different)) for different, places in ranks]
        elif (context := template.access_context(problem)) is not None:
            self._known = _known(template.name, context, radices)

    def of(self, rows: Rows) -> tuple[Floats, Floats]:
        """Return COEF_bc, and passes of a load, of some of the schedules."""
        codes = np.zeros(rows.size, np.int64)
        for values, radix in self._digits:
            codes = codes * radix + values[rows]
        different, first, places = np.unique(codes, return_index=True, return_inverse=True)
        known, listed = self._known, different.tolist()
        fresh = [place for place, code in enumerate(listed) if code not in known]
        if fresh:
            columns = {name: values[rows[first[fresh]]] for name, values in self._columns.items()}
            for place, schedule in zip(fresh, schedules_of(self._template, columns), strict=True):
                cost = shared_cost(tuple(self._accesses_of(schedule)))
                known[listed[place]] = cost.coefficient, cost.passes
        costs = np.asarray([known[code] for code in listed])[places]
        return costs[:, 0], costs[:, 1]


def schedules_of(template: Template, columns: Columns) -> list[Schedule]:
    """Return the schedules that columns hold."""
    make = template.schedule_type
    values = [columns[field.name].tolist() for field in fields(make)]
    return [make(*parameters) for parameters in zip(*values, strict=True)]


@lru_cache(maxsize=1 << 10)
def _known(template: str, context: Hashable, radices: tuple[int, ...]) -> _Known:
    """What is known of the loads of a template's schedules in a context, by codes of these radices."""
    del template, context, radices
    return {}
