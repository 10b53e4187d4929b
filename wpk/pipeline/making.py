"""From a lowered model to its plan: models choose or the GPU decides, then everything is checked, as in the docs' picture."""

import time
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial

from wpk.assembly import EvidenceBook, assemble, with_evidence
from wpk.backends import open_device
from wpk.beside import Beside, Handover, awaited
from wpk.build import CompilePool
from wpk.checks import with_checks
from wpk.lowering.lowered_model import LoweredModel
from wpk.lowering.model import ModelForms
from wpk.options import SearchOptions
from wpk.phases import Phases
from wpk.pipeline.job import Job
from wpk.plan import PlanBundle
from wpk.problems import Problem
from wpk.schedules import TEMPLATES
from wpk.search.forms import Estimates
from wpk.search.loop import (
    Choices,
    Equipment,
    FormContest,
    ModelTuning,
    OnRivals,
    Tuning,
    Watch,
    Workshop,
    cases_of,
    chosen_by_models,
    competes,
    evidence_of,
    matching,
    measured_model,
    selected_problems,
    static_choices,
    twins_of,
)
from wpk.search.models import (
    ScoringPool,
    Shortlists,
    StaticChoices,
    choose_among,
    find_pruning,
    search_model,
)
from wpk.search.store import RunRecord
from wpk.trial_bench import GpuLease, Offers


@dataclass(frozen=True)
class Shop:
    """What a plan and those of its bodies are made with; see `optimize`."""

    job: Job
    search: SearchOptions
    pool: CompilePool
    scoring: ScoringPool
    lease: GpuLease
    entered: tuple[Tuning, RunRecord] | None
    phases: Phases
    on_rivals: OnRivals | None
    forms: ModelForms | None
    begun: float | None

    def scored(self, lowered: LoweredModel) -> Iterator[Shortlists]:
        """What the models have to say of each problem, one after the other."""
        return self.scoring.shortlists(lowered.program.problems, self.job.progress)

    def static(self, lowered: LoweredModel) -> StaticChoices:
        """What the models choose."""
        job, problems = self.job, lowered.program.problems
        skipped, pruning = job.build.skip_templates, find_pruning(self.search.prune)
        asked = problems, TEMPLATES, job.target, self.pool.compile, job.progress
        return search_model(*asked, skip=skipped, pruning=pruning)

    def contest(self, lowered: LoweredModel, tuning: Tuning | None) -> FormContest | None:
        """The contest of a model's forms; None where only the usual one is looked at."""
        forms = self.forms
        if forms is None or not competes(self.search, lowered, measured=tuning is not None):
            return None
        skipped, pruning = self.job.build.skip_templates, find_pruning(self.search.prune)
        estimates = Estimates(self.job.target, skipped, pruning)
        budget = None if tuning is None else tuning.budget
        return FormContest(forms.lowered, lowered, estimates, budget, self.job.progress)


def made_plan(shop: Shop, lowered: LoweredModel) -> PlanBundle:
    """A lowered model's plan, behind those of its bodies."""
    job, search, lease = shop.job, shop.search, shop.lease
    within = replace(shop, job=job.of_bodies(), on_rivals=None, forms=None, begun=None)
    bodies = {
        model: tuple(made_plan(within, body) for body in made)
        for model, made in lowered.bodies.items()
    }
    begun = time.monotonic() if shop.begun is None else shop.begun
    patterns = matching(lowered.program.operators, search.operators)
    is_measured = bool(lowered.program.problems) and (bool(patterns) or not search.operators)
    run = shop.entered if is_measured else None
    tuning = None if run is None else run[0]
    contest = shop.contest(lowered, tuning)
    if contest is not None and tuning is not None:
        lowered = contest.begin()  # what models can say without measuring is said before
    program = lowered.program
    named = selected_problems(program.operators, patterns)
    with (
        Beside("references") as references,
        Beside("choices") as choosing,
        Offers(lease, () if run is None else twins_of(program.operators, named)) as offers,
    ):
        cases = None if tuning is None else cases_of(lowered, tuning.seed, shop.phases)
        proof = job.proof(lowered, references, cases or ())
        handed, scored = Handover[Shortlists](), dict[Problem, Shortlists]()
        found = choosing.submit(partial(choose_among, handed, shop.pool.compile))
        with handed as hand_over:  # kernels of the first problems compile while others are scored
            for each in shop.scored(lowered):
                hand_over(each)
                scored[each.problem] = each
        if contest is not None:
            contest.score(scored)
            contest.look(is_free=lambda: not found.done())  # while kernels compile
        static = awaited(found, "compiling kernels", job.progress)
        if run is None or cases is None:
            made, static, forms = chosen_by_models(lowered, static, contest, shop.static)
            bundle, choices = _by_models(job, made, static, bodies)
            book = EvidenceBook(evidence_of(bundle.plan, choices), forms=forms)
        else:
            usual, _ = _by_models(job, lowered, static, bodies)
            how = ModelTuning(
                usual.plan,
                job.target,
                Equipment(shop.pool.submit, lease, offers),
                replace(run[0], operators=patterns),
                run[1],
                shop.phases,
                cases,
            )
            workshop = Workshop(partial(job.setting, bodies=bodies), shop.pool.compile)
            watch = Watch(how.tuning.budget, begun)
            asked = lowered, static, how, workshop, contest, watch, shop.on_rivals
            measured = measured_model(*asked)
            made, engine = measured.lowered, measured.engine
            bundle, book = engine.bundle, engine.book
        if proof is not None:
            proven = awaited(proof, "checking graph passes", job.progress)
            if made is not lowered:
                proven = job.prove(made, job.progress)
            on_gpu = shop.entered is not None
            with nullcontext(lease.process()) if on_gpu else open_device("cpu") as device:
                book = with_checks(book, bundle, proven, device, job.progress)
    return with_evidence(bundle, book)


def _by_models(
    job: Job,
    lowered: LoweredModel,
    static: StaticChoices,
    bodies: Mapping[str, tuple[PlanBundle, ...]],
) -> tuple[PlanBundle, Choices]:
    """The plan of what the models choose, without evidence."""
    choices = static_choices(static)
    made = choices.implementations, choices.kernels
    return assemble(lowered.program, *made, job.setting(lowered, bodies)), choices
