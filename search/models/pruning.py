"""What prunes a template's space: a score, and how many of the best by it are kept.

- ``waves`` (default): the share of the peak that a model of the blocks' waves reaches
  (`wpk.performance.extension`); max(24, 3.5 %), at most 256, of each family of schedules. It keeps the
  winners of measured spaces (docs/decisions/0013-score-from-waves.md).
- ``pul``: DeepCuts' score as its equations say (`wpk.performance.pul`); the best 1 % of the space, as its
  section 6 prunes. To compare with: docs/benchmarks.md says how many winners each keeps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from wpk.errors import WpkError
from wpk.performance import Floats, Grids, extended_pul_of, pul

Score = Callable[[Grids, float, Floats | float], Floats]
"""Scores schedules, each between 0 and 1, by their grids, the operations that the problem needs, and COEF_bc of their shared
loads; with 1, and grids that no load's conflicts slow down, by an upper limit of that."""

LEAST_KEPT, MOST_KEPT, KEPT_SHARE = 24, 256, 0.035

PAPER_SHARE = 0.01
"""T of DeepCuts: the part of a space that its evaluation measures."""


@dataclass(frozen=True)
class Pruning:
    """A pruning says which schedules of a template are kept.

    Attributes:
        name: As `--prune` says it.
        score: The best by it are kept.
        kept: How many of so many legal ones.
        by_family: Whether each of a template's families is pruned by itself.
    """

    name: str
    score: Score
    kept: Callable[[int], int]
    by_family: bool


def _by_waves(grids: Grids, operations: float, conflicts: Floats | float) -> Floats:
    del conflicts  # the waves have them
    return extended_pul_of(grids, operations).score


def _by_pul(grids: Grids, operations: float, conflicts: Floats | float) -> Floats:
    del operations  # PUL knows what blocks do, not what a problem needs
    return pul(grids.work, grids.target, conflicts).score


def kept_count(legal: int) -> int:
    """Return how many schedules the score of waves leaves of so many legal ones: max(24, 3.5 %), at most 256."""
    return min(legal, MOST_KEPT, max(LEAST_KEPT, round(KEPT_SHARE * legal)))


def paper_count(legal: int) -> int:
    """Return how many schedules DeepCuts leaves of so many legal ones: 1 %, and at least one."""
    return min(legal, max(1, round(PAPER_SHARE * legal)))


WAVES = Pruning("waves", _by_waves, kept_count, by_family=True)
PUL = Pruning("pul", _by_pul, paper_count, by_family=False)

PRUNINGS = {each.name: each for each in (WAVES, PUL)}
"""By name; `SearchOptions.prune` writes the names out, so that help loads no models."""


def find_pruning(name: str) -> Pruning:
    """Return the pruning of a name.

    Raises:
        WpkError: There is none; names those that exist.
    """
    if name not in PRUNINGS:
        raise WpkError(f"there is no pruning '{name}'", fix=f"choose one of {', '.join(PRUNINGS)}")
    return PRUNINGS[name]
