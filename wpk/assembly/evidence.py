"""Why a plan is what it is, collected while it is made and written into it once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from wpk.plan import Check, CheckMode, EngineMeasurement, Evidence, FormSearch, PlanBundle
from wpk.search.models import KernelChoice


@dataclass(frozen=True)
class EvidenceBook:
    """All that a plan says beside what an engine needs.

    Attributes:
        steps: Why each step is what it is, in their order.
        checks: Checks of the whole engine.
        check_mode: How thoroughly everything was checked.
        checked_on: Device that executed everything that was checked; empty where nothing was.
        measurement: Of the whole engine; None where nothing was measured.
        forms: How the form of the model was found; None where only the usual one was looked at.
    """

    steps: tuple[Evidence, ...]
    checks: tuple[Check, ...] = ()
    check_mode: CheckMode = CheckMode.OFF
    checked_on: str = ""
    measurement: EngineMeasurement | None = None
    forms: FormSearch | None = None


def with_evidence(bundle: PlanBundle, book: EvidenceBook) -> PlanBundle:
    """The plan with its evidence."""
    steps = tuple(
        replace(step, evidence=evidence)
        for step, evidence in zip(bundle.plan.steps, book.steps, strict=True)
    )
    plan = replace(
        bundle.plan,
        steps=steps,
        checks=book.checks,
        check_mode=book.check_mode,
        checked_on=book.checked_on,
        measurement=book.measurement,
        forms=book.forms,
    )
    return replace(bundle, plan=plan)


def with_phases(bundle: PlanBundle, seconds: Mapping[str, float]) -> PlanBundle:
    """The plan with what each phase of making it took; the same where nothing was measured."""
    measured = bundle.plan.measurement
    if measured is None:
        return bundle
    plan = replace(bundle.plan, measurement=replace(measured, phases=dict(seconds)))
    return replace(bundle, plan=plan)


def predicted_evidence(choice: KernelChoice) -> Evidence:
    """What the models say of a problem, and of the schedule that is chosen for it."""
    prediction = choice.finalist.prediction
    return Evidence(
        bound_seconds=choice.bound.seconds,
        bound_by=choice.bound.limiter,
        estimate_seconds=prediction.estimate,
        score=prediction.score,
        funnels=choice.funnels,
    )
