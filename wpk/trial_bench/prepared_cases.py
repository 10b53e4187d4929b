"""The cases that were tried last stay prepared, since a problem's trials follow each other."""

from collections import OrderedDict

from wpk.checks import StepCase, StepRunner
from wpk.plan import Step
from wpk.trial_bench.cases import Case

HELD_BYTES = 2 << 30
"""Of memory, beside the references themselves: several problems of the largest layers."""


class PreparedCases:
    """This cache holds cases with the bytes that every candidate is given and compared with."""

    def __init__(self, held_bytes: int = HELD_BYTES) -> None:
        """Begin with none; the last one stays, whatever it takes."""
        self._limit = held_bytes
        self._held: OrderedDict[int, tuple[Case, StepCase]] = OrderedDict()

    def of(self, case: Case, runner: StepRunner, step: Step) -> StepCase:
        """Return a case made ready to be checked; ``step`` computes it on the tensors of ``runner``."""
        if id(case) not in self._held:
            prepared = runner.prepare(step, case.memory, case.result)
            self._held[id(case)] = case, prepared  # holding the case keeps its id its own
        self._held.move_to_end(id(case))
        while len(self._held) > 1 and sum(p.bytes for _, p in self._held.values()) > self._limit:
            self._held.popitem(last=False)
        return self._held[id(case)][1]
