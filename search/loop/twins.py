"""Problems that differ in numbers only are twins: one of them is tuned, and what wins computes all.

Their kernels are the same code, which takes the numbers (`wpk.problems.lifted`); a library's implementations differ in
nothing else either. Every operator is checked alone with its own numbers before a plan is written.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from wpk.lowering.program import Operator
from wpk.problems import Problem, lifted
from wpk.search.loop.result import TuningResult

Twins = Mapping[Problem, tuple[Problem, ...]]
"""Problems that differ in numbers only, by the one of them that is tuned, which is the first."""

SHARED = "shares its kernel with an operator that was tuned: they differ in numbers only"
"""What the tuning store is said to know of a problem that is not tuned itself."""


def twins_of(operators: Sequence[Operator], problems: Collection[Problem]) -> Twins:
    """Return which problems are tuned, each with its twins; most have none besides themselves.

    Of twins the problem of most operators is tuned, of several with as many the first.

    Args:
        operators: Of the program.
        problems: Those of their problems that are tuned.
    """
    counts = Counter(each.problem for each in operators if each.problem in problems)
    alike: dict[Problem, list[Problem]] = {}
    for problem in counts:
        alike.setdefault(lifted(problem).problem, []).append(problem)
    ranked = (sorted(twins, key=lambda each: -counts[each]) for twins in alike.values())
    return {twins[0]: tuple(twins) for twins in ranked}


def of_all_twins(
    results: Mapping[Problem, TuningResult], twins: Twins
) -> dict[Problem, TuningResult]:
    """Return the outcomes of what was tuned as those of all twins."""
    found = dict(results)
    for tuned, result in results.items():
        lookups = (*result.lookups, SHARED)
        others = twins[tuned][1:]
        found |= {each: replace(result, problem=each, lookups=lookups) for each in others}
    return found
