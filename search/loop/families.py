"""Problems that differ in numbers only are a family: its leader is tuned, and what wins computes all of them.

Their kernels are the same code, which takes the numbers (`wpk.problems.lifted`); a library's implementations differ in
nothing else either. Every operator is checked alone with its own numbers before a plan is written.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from wpk.lowering.program import Operator
from wpk.problems import Problem, lifted
from wpk.search.loop.result import TuningResult

Families = Mapping[Problem, tuple[Problem, ...]]
"""The members of each family by its leader, which is the first of them."""

SHARED = "shares its kernel with an operator that was tuned: they differ in numbers only"
"""What the tuning store is said to know of a problem that is not tuned itself."""


def families_of(operators: Sequence[Operator], problems: Collection[Problem]) -> Families:
    """Return the families of some problems; one that differs in more than numbers is a family of its own.

    A leader is the problem of most operators, of several with as many the first.

    Args:
        operators: Of the program.
        problems: Those of their problems that are tuned.
    """
    counts = Counter(each.problem for each in operators if each.problem in problems)
    alike: dict[Problem, list[Problem]] = {}
    for problem in counts:
        alike.setdefault(lifted(problem).problem, []).append(problem)
    ranked = (sorted(members, key=lambda each: -counts[each]) for members in alike.values())
    return {members[0]: tuple(members) for members in ranked}


def of_all_members(
    results: Mapping[Problem, TuningResult], families: Families
) -> dict[Problem, TuningResult]:
    """Return the outcomes of the leaders as those of all members."""
    found = dict(results)
    for leader, result in results.items():
        _, *heirs = families[leader]
        lookups = (*result.lookups, SHARED)
        found |= {heir: replace(result, problem=heir, lookups=lookups) for heir in heirs}
    return found
