"""What reports say of the bodies of control flow: each is an engine, with a plan of its own."""

from collections.abc import Iterator
from dataclasses import dataclass

from wpk.plan import Check, PlanBundle
from wpk.report.plans.check_words import state_word
from wpk.report.plans.words import listed


@dataclass(frozen=True)
class BodyFacts:
    """A body of control flow that is an engine.

    Attributes:
        name: Whose body it is, and which.
        operators: What its operators compute, in words.
        launches: Kernel launches each time that it is executed.
        estimate_us: What its kernels take then, as predicted.
        state: What its checks found, in a word.
        checks: These checks: of its operators, then of the whole.
    """

    name: str
    operators: tuple[str, ...]
    launches: int
    estimate_us: float
    state: str
    checks: tuple[Check, ...]

    @property
    def sentence(self) -> str:
        """All of it but the single checks."""
        return (
            f"{self.name} is an engine of {len(self.operators)} operators ({listed(self.operators)}), "
            f"{self.launches} kernel launches and an estimate of {self.estimate_us:.2f} µs each time; "
            f"its checks: {self.state}"
        )


def bodies_of(bundle: PlanBundle, prefix: str = "") -> Iterator[BodyFacts]:
    """Yield the bodies of a plan, each before those within it."""
    for step in bundle.plan.steps:
        for number, digest in enumerate(step.bodies, 1):
            body = bundle.bodies[digest]
            steps = body.plan.steps
            checks = (*(c for s in steps for c in s.evidence.checks), *body.plan.checks)
            name = f"{prefix}body {number} of {step.operator.name}"
            yield BodyFacts(
                name=name,
                operators=tuple(each.operator.problem.words() for each in steps),
                launches=sum(len(each.launches) for each in steps),
                estimate_us=sum(each.evidence.estimate_seconds or 0.0 for each in steps) * 1e6,
                state=state_word(checks),
                checks=checks,
            )
            yield from bodies_of(body, f"{name}, ")
