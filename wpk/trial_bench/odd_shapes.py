"""Finalists run on an odd shape: what may be chosen is right at ragged edges, also where its problem has none."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from wpk.assembly import generated
from wpk.libraries import why_unknown
from wpk.schedules import TEMPLATE_OF
from wpk.targets import Target
from wpk.trial import Regime
from wpk.trial_bench.compile_ahead import CompileAhead, Delivery, KernelOrder
from wpk.trial_bench.gpu_lease import GpuLease
from wpk.trial_bench.odd_case import odd_case
from wpk.trial_bench.trials import TrialRunner, Way

_KEPT = 8
"""Cases kept: the finalists of a problem share a few siblings."""

_CHECKING = Way(timed=False)


@dataclass(frozen=True)
class OddVerdict:
    """A verdict says what a schedule is worth on an odd shape.

    Attributes:
        wrong: What it gets wrong there, naming the shape; empty where it is right.
        unchecked: Why it was not executed on one; empty where it was.
    """

    wrong: str = ""
    unchecked: str = ""


class OddShapes:
    """This object has each schedule of a problem executed on an odd sibling of the problem, once."""

    def __init__(self, target: Target, lease: GpuLease, ahead: CompileAhead) -> None:
        """Begin with nothing known.

        Args:
            target: The GPU compiled for.
            lease: The process that executes; a schedule that is wrong ends it.
            ahead: Compiles, as it does what is measured.
        """
        self._target, self._lease, self._ahead = target, lease, ahead
        self._case = lru_cache(_KEPT)(odd_case)
        self._verdicts: dict[KernelOrder, OddVerdict] = {}
        self._siblings: dict[
            KernelOrder, KernelOrder | str
        ] = {}  # of what was expected and has no verdict

    def expect(self, finalists: Sequence[KernelOrder]) -> None:
        """Note what will be asked: its siblings are compiled meanwhile."""
        new = [e for e in finalists if e not in self._verdicts and e not in self._siblings]
        self._siblings |= {each: sibling_of(each, self._target) for each in new}
        self._ahead.expect(self._compiled(new))

    def drop(self, finalists: Sequence[KernelOrder]) -> None:
        """Note that these will not be asked."""
        expected = [each for each in finalists if each in self._siblings]
        self._ahead.drop(self._compiled(expected))
        for each in expected:
            del self._siblings[each]

    def verdict(self, finalist: KernelOrder) -> OddVerdict:
        """Return the outcome for a schedule; wait for its kernels.

        Raises:
            EngineError: The GPU cannot be used at all.
        """
        if finalist not in self._verdicts:
            self.expect([finalist])
            self._verdicts[finalist] = self._judge(self._siblings.pop(finalist))
        return self._verdicts[finalist]

    def _compiled(self, finalists: Sequence[KernelOrder]) -> list[KernelOrder]:
        siblings = (self._siblings[each] for each in finalists)
        return [sibling for sibling in siblings if isinstance(sibling, KernelOrder)]

    def _judge(self, sibling: KernelOrder | str) -> OddVerdict:
        if isinstance(sibling, str):
            return OddVerdict(unchecked=f"not checked on an odd shape: {sibling}")
        (delivery,) = self._ahead.get([sibling])
        self._ahead.drop([sibling])  # it is no candidate, and nothing is to be made of it
        return self._executed(sibling, delivery)

    def _executed(self, sibling: KernelOrder, delivery: Delivery) -> OddVerdict:
        shape = sibling.problem.words()
        kernels = {}
        for outcome in delivery.outcomes:
            if outcome.kernel is None:
                why = f"it does not compile for {shape}: {outcome.error}"
                return OddVerdict(unchecked=f"not checked on an odd shape: {why}")
            kernels[outcome.source.digest] = outcome.kernel
        case = self._case(sibling.problem)
        if case is None:
            why = f"at random operands, {shape} is not a number everywhere"
            return OddVerdict(unchecked=f"not checked on an odd shape: {why}")
        runner = TrialRunner(self._lease, {sibling.problem: case}, Regime.WARM)
        implementation = generated(sibling.problem, delivery.finalist)
        trial = runner.trial(sibling.problem, implementation, kernels, _CHECKING)
        if trial.ran:
            return OddVerdict()
        return OddVerdict(wrong=f"on the odd shape {shape}: {trial.detail}")


def sibling_of(order: KernelOrder, target: Target) -> KernelOrder | str:
    """Return the same schedule on the most ragged sibling that it is legal for; or why there is none."""
    reason = why_unknown(order.problem)
    if reason is not None:
        return reason
    template = TEMPLATE_OF[order.candidate.maker.name]
    schedule = template.schedule_from(order.candidate.configuration)
    last = "its layout fits no other sizes"
    for problem in order.problem.odd_siblings():
        refused = template.why_not(problem, target)
        refused = refused or template.why_illegal(problem, schedule, target)
        if refused is None:
            return KernelOrder(problem, order.candidate)
        last = refused
    return f"the schedule is legal for none, at last: {last}"
