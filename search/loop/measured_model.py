"""A model is measured: its problems are tuned, its forms compete, and whole engines decide."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from wpk.assembly import PackedConstants, Setting
from wpk.errors import EngineError
from wpk.lowering.lowered_model import LoweredModel
from wpk.search.loop.budget import Budget, Watch
from wpk.search.loop.choices import Choices, static_choices
from wpk.search.loop.confirmation import Confirmed, EngineForm, OnRivals, confirmed
from wpk.search.loop.form_contest import FOUND, FormContest, FormsFound, recorded
from wpk.search.loop.form_tuning import parted, room
from wpk.search.loop.model_tuning import ModelTuning, tune_model
from wpk.search.models import Compiler, StaticChoices

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Measured:
    """The fastest engine of a model.

    Attributes:
        lowered: The model in its form.
        engine: The engine.
    """

    lowered: LoweredModel
    engine: Confirmed


@dataclass(frozen=True)
class Workshop:
    """What engines of a model are made with.

    Attributes:
        setting: What plans of a lowered model are written for.
        compiler: Compiles kernels.
    """

    setting: Callable[[LoweredModel], Setting]
    compiler: Compiler


def measured_model(
    lowered: LoweredModel,
    static: StaticChoices,
    how: ModelTuning,
    workshop: Workshop,
    contest: FormContest | None,
    watch: Watch,
    on_rivals: OnRivals | None,
) -> Measured:
    """Tune a model, and return its fastest whole engine.

    Args:
        lowered: Its usual form: the one that tuning begins with.
        static: What the models chose for that.
        how: How it is tuned.
        workshop: Makes engines.
        contest: Of its forms; None where only the usual one is looked at.
        watch: Says what is left of the run's time.
        on_rivals: Told of the engines that were compared, by name.

    Raises:
        WpkError: Measuring fails; see `tune_model` and `confirmed`. Where engines of all forms do not fit into
            the GPU's memory together, those of the usual one are compared, and a warning says so.
    """
    found, tuned = _tuned(lowered, static, how, workshop, contest, watch)
    models = {"": lowered}
    forms = [_form("", lowered, tuned, workshop)]
    for name, other in ({} if found is None else found.models).items():
        models[name] = other
        forms.append(_form(name, models[name], tuned, workshop, compared=name != FOUND))
    gpu = how.equipment.lease.process()
    limit = watch.for_engines()
    try:
        best = confirmed(forms, static_choices(static), gpu, how.tell, on_rivals, limit)
    except EngineError as error:
        if len(forms) == 1:
            raise
        _log.warning("only engines of the usual form are compared: %s", error.what)
        best = confirmed(forms[:1], static_choices(static), gpu, how.tell, on_rivals, limit)
    chosen = models[best.form.name]
    if found is not None and contest is not None:
        asked = found.partitioning, chosen.source.changed
        search = recorded(*asked, measured=True, begun=contest.begun)
        best = replace(best, book=replace(best.book, forms=search))
    for cases in how.cases:
        cases.check()  # also where nobody asked for what could not be computed
    return Measured(chosen, best)


def _tuned(
    lowered: LoweredModel,
    static: StaticChoices,
    how: ModelTuning,
    workshop: Workshop,
    contest: FormContest | None,
    watch: Watch,
) -> tuple[FormsFound | None, Choices]:
    """What may compute each problem of the usual form, and of others; these share a budget."""
    begun = time.monotonic()

    def budget() -> Budget:
        """What the usual form may spend, once its static choices are measured; waiting was no measuring."""
        passed = time.monotonic() - begun - sum(cases.waited for cases in how.cases)
        watch.start(
            how.cases[0].expected_seconds(), passed
        )  # as the last check computes them again
        whole = watch.for_trials()
        if contest is None or contest.least_problems is None:
            return whole
        usual, others = parted(whole)
        return whole if contest.least_problems > room(others) else usual

    tuned = tune_model(lowered, static, how, budget)
    if contest is None:
        return None, tuned
    left = Budget(watch.for_trials().seconds, parted(how.tuning.budget)[1].trials)
    found = contest.by_measuring(how.within(left), tuned, workshop.compiler)
    return found, found.choices


def _form(
    name: str, lowered: LoweredModel, tuned: Choices, workshop: Workshop, *, compared: bool = False
) -> EngineForm:
    program, constants = lowered.program, PackedConstants(lowered.program.constants)
    own = tuned.of(program.problems)
    return EngineForm(name, program, own, workshop.setting(lowered), constants, compared)
