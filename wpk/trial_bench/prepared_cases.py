"""The cases that were tried last stay prepared, since a problem's trials follow each other."""

from collections import OrderedDict

from wpk.checks import StepCase, StepRunner
from wpk.free_memory import free_bytes
from wpk.plan import Step
from wpk.trial_bench.cases import Case

HELD_BYTES = 2 << 30
"""Of memory, beside the references themselves: several problems of the largest layers."""

HELD_PART = 4
"""One part in so many of the memory that is free may be held where that is more: then each case of a large batch is
prepared once, although all problems are tried a little before they are tuned."""


def held_bytes(coming: int) -> int:
    """Return the memory that prepared cases may take on this machine now.

    Args:
        coming: Bytes that references take which are not computed yet.
    """
    return max(HELD_BYTES, ((free_bytes() or 0) - coming) // HELD_PART)


class PreparedCases:
    """This cache holds cases with the bytes that every candidate is given and compared with."""

    def __init__(self, limit: int) -> None:
        """Begin with none; the last one stays, whatever it takes.

        Args:
            limit: Bytes that they may take together.
        """
        self._limit = limit
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
