"""What of a problem is recorded to judge the models: what they choose first, and others that chance has drawn.

The first schedules are those of all templates together, by estimate, of all that the score keeps: what
production measures, and in which order. The others are drawn from all legal schedules of the templates that have one
among the first, as many of each template as its share of the first is: no score has chosen them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from spaces.sampling import Sample, Template, carrying
from wpk.performance import bound
from wpk.problems import Problem
from wpk.schedules import Schedule
from wpk.search.models.shortlist import shortlist
from wpk.targets import Target


@dataclass(frozen=True)
class Probe:
    """A probe says how much of each problem is recorded.

    Attributes:
        first: Schedules that the models choose first, of all templates together.
        random: Other legal schedules.
        seed: Of the draw.
    """

    first: int
    random: int
    seed: int = 0

    def __call__(self, problem: Problem, target: Target) -> list[Sample]:
        """Return the samples of the templates that have some of the first schedules."""
        least = bound(problem, target)
        found = [shortlist(problem, each, target, least) for each in carrying(problem, target)]
        ranked = sorted(
            (prediction.estimate, place)
            for place, each in enumerate(found)
            for prediction in each.first(self.first)
        )[: self.first]
        counts = Counter(place for _, place in ranked)
        samples = []
        for place, count in sorted(counts.items()):
            each = found[place]
            kept = tuple(prediction.schedule for prediction in each.first(count))
            wanted = round(self.random * count / len(ranked))
            others = self._drawn(problem, target, each.template, kept, wanted)
            samples.append(
                Sample(
                    each.template,
                    each.funnel.legal,
                    each.funnel.kept,
                    kept,
                    others,
                    each.kept.columns,
                )
            )
        return samples

    def _drawn(
        self,
        problem: Problem,
        target: Target,
        template: Template,
        kept: tuple[Schedule, ...],
        count: int,
    ) -> tuple[Schedule, ...]:
        """Other legal schedules than the first; fewer where there are no more."""
        _, columns = template.space(problem, target)
        rows = np.random.default_rng(self.seed).permutation(len(next(iter(columns.values()))))
        enough = rows[: count + len(kept)].tolist()
        drawn = (template.schedule(columns, row) for row in enough)
        return tuple([each for each in drawn if each not in set(kept)][:count])
