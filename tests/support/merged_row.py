"""A model that exists as a list of operators only: no graph, no kernel, no GPU."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from wpk.errors import ScheduleError
from wpk.graph_passes import Site, every_site
from wpk.search.forms.form import Form, Forms, RefusedFormError
from wpk.search.forms.judges import ByMeasuring, Proposal
from wpk.search.forms.partition import Partitioning, best_partition

A, B, C = "join:a", "join:b", "join:c"


@dataclass
class Model:
    """Four nodes in a row; a merge joins two neighbours unless it is taken back. Problems are their texts.

    Attributes:
        merges: By key, the place between two nodes.
        seconds: By operator; what is not named takes a millisecond a node.
        estimates: The same, by the models.
        late: Keys whose sites only show where another key is taken back.
        measured: What was measured, in order.
        meet: Whether neighbouring merges decide over a node in common.
        words: By key, what is so if it is not changed, where that is not what others say.
    """

    merges: dict[str, int] = field(default_factory=lambda: {A: 1, B: 2, C: 3})
    seconds: dict[str, float] = field(default_factory=dict)
    estimates: dict[str, float] = field(default_factory=dict)
    late: dict[str, str] = field(default_factory=dict)
    refused: tuple[str, ...] = ()
    measured: list[str] = field(default_factory=list)
    lowered: list[frozenset[str]] = field(default_factory=list)
    meet: bool = False
    words: dict[str, str] = field(default_factory=dict)

    def form(self, changed: frozenset[str]) -> Form:
        taken = {key for key in self.merges if key in changed or every_site("join") in changed}
        cuts = sorted(self.merges[key] for key in taken)
        ends = zip([0, *cuts], [*cuts, 4], strict=True)
        operators = ["wxyz"[first:last] for first, last in ends]
        shown = [key for key in self.merges if self.late.get(key, key) in {*taken, key}]
        sites = {
            key: (Site(key, self._nodes(key), self.words.get(key, "merges")),) for key in shown
        }
        problems: Counter[Any] = Counter(operators)
        return Form(changed, problems, 0, sites)

    def _nodes(self, key: str) -> tuple[str, ...]:
        place = self.merges[key]
        return tuple("wxyz"[place - 1 : place + 1]) if self.meet else (key,)

    def time(self, operator: Any) -> float:
        return self.seconds.get(operator, 1e-3 * len(operator))

    def estimate(self, operator: Any) -> float:
        if operator in self.refused:
            raise ScheduleError(f"no template computes {operator}", fix="")
        return self.estimates.get(operator, 1e-3 * len(operator))

    def measure(
        self, proposals: Sequence[Proposal], problems: Collection[Any]
    ) -> Mapping[Any, float]:
        assert {p for each in proposals for p in each.between.problems} >= set(problems)
        self.measured += problems
        return {problem: self.time(problem) for problem in problems}

    def search(self, **options: Any) -> Partitioning:
        fixed = self.form(frozenset())
        judge = ByMeasuring(self.measure, {p: self.time(p) for p in fixed.problems})
        return best_partition(NoGraph(self, fixed), self.estimate, judge, **options)


class NoGraph(Forms):
    """Forms of a model that is no graph."""

    def __init__(self, model: Model, fixed: Form) -> None:
        super().__init__(lambda changed: None, fixed)  # type: ignore[arg-type,return-value]
        self._model = model

    def _lowered(self, changed: frozenset[str]) -> Form | RefusedFormError:
        self._model.lowered.append(changed)
        return self._model.form(changed)
