"""An operator of a plan with all that its distance from the bound may be explained by."""

from dataclasses import dataclass
from functools import cached_property

from wpk.candidate import Kind
from wpk.dims import evaluate
from wpk.errors import EngineError
from wpk.performance import Work
from wpk.plan import Plan, Step
from wpk.schedules import TEMPLATE_OF
from wpk.targets import TARGETS, Target


def target_of(plan: Plan) -> Target | None:
    """Return what is known of the GPU that a plan is for; None where a file described it."""
    known = (each for each in TARGETS if (each.name, each.arch) == (plan.target, plan.arch))
    return next(known, None)


@dataclass(frozen=True)
class Subject:
    """An operator that takes longer than it should.

    Attributes:
        plan: That it is a step of.
        step: The operator and what computes it.
        seconds: Its time, measured or estimated.
        target: The GPU; None where it is not known.
    """

    plan: Plan
    step: Step
    seconds: float
    target: Target | None

    @property
    def is_generated(self) -> bool:
        """Whether kernels of a template compute it."""
        return self.step.candidate.maker.kind is Kind.TEMPLATE

    @cached_property
    def work(self) -> Work | None:
        """What its schedule makes the GPU do: arrays of one entry. None where nothing here can tell.

        Only the template of this installation whose version the plan names knows its schedules.
        """
        maker, problem = self.step.candidate.maker, self.step.operator.problem
        template = TEMPLATE_OF.get(maker.name)
        if self.target is None or template is None or template.maker != maker:
            return None
        try:
            schedule = template.schedule_from(self.step.candidate.configuration)
        except TypeError:
            return None
        carried = isinstance(problem, template.problem_type)
        if not carried or template.why_not(problem, self.target) is not None:
            return None
        if template.why_illegal(problem, schedule, self.target) is not None:
            return None
        return template.work(problem, schedule.columns(), self.target)

    @cached_property
    def blocks(self) -> int | None:
        """Blocks of its largest launch at the tuned sizes; None where it has no launches."""
        try:
            grids = [
                [evaluate(extent, self.plan.free) for extent in launch.grid]
                for launch in self.step.launches
            ]
        except EngineError:
            return None
        return max((x * y * z for x, y, z in grids), default=None)
