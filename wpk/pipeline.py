"""``wpk.optimize``: from a model to a verified plan. This file reads like the picture in the docs."""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from wpk.assembly import (
    EvidenceBook,
    Lock,
    Setting,
    assemble,
    compile_locked,
    implementations_of,
    input_ports,
    locked_bodies,
    model_digest,
    provenance,
    read_lock,
    require_fit,
    require_locked_plan,
    require_target,
    with_evidence,
    with_phases,
)
from wpk.backends import open_device
from wpk.beside import Beside, awaited
from wpk.build import CompilePool
from wpk.checks import (
    PassProof,
    Scope,
    proven,
    require_inputs,
    require_passed,
    scope_of,
    scope_of_bodies,
    verify,
    with_checks,
)
from wpk.dtypes import Precision
from wpk.lowering.lowered_model import LoweredModel, Source
from wpk.lowering.model import ModelForms
from wpk.model_source import Model, model_file
from wpk.options import BuildOptions, Options, SearchOptions, split_options
from wpk.phases import Phases
from wpk.plan import CheckMode, Paths, PlanBundle, write_plan
from wpk.problems import Problem
from wpk.progress import Progress, silent
from wpk.report import shown
from wpk.schedules import TEMPLATES
from wpk.search.forms import Estimates
from wpk.search.loop import (
    CacheFolder,
    Choices,
    Equipment,
    FormContest,
    ModelTuning,
    OnRivals,
    Preview,
    Tuning,
    Watch,
    Workshop,
    cases_of,
    choose_target,
    chosen_by_models,
    competes,
    evidence_of,
    matching,
    measured_model,
    plan_tuning,
    preview_of,
    require_measuring,
    runs,
    selected_problems,
    static_choices,
    twins_of,
)
from wpk.search.models import (
    Shortlists,
    StaticChoices,
    check_skips,
    choose_among,
    find_pruning,
    search_model,
    shortlist_problems,
)
from wpk.search.store import RunRecord
from wpk.targets import Target, has_clusters
from wpk.trial_bench import Cases, GpuLease, Offers, reference_bytes

MOST_BESIDE_BYTES = 2**31
"""Of a model's references at one seed, up to which its passes are proven while these are held."""


def optimize(
    model: Model,
    output: Paths,
    *,
    resume: str | None = None,
    cache: Paths | None = None,
    check: CheckMode | str = CheckMode.ON,
    inputs: Sequence[Mapping[str, NDArray[np.generic]]] = (),
    example_inputs: Sequence[Any] | Mapping[str, Any] = (),
    progress: Progress | None = None,
    on_run: Callable[[RunRecord], None] | None = None,
    on_rivals: OnRivals | None = None,
    **options: Unpack[Options],
) -> PlanBundle:
    """Turn an ONNX model into a plan file.

    Args:
        model: The ONNX file, whose external data lies beside it; or an `onnx.ModelProto`, the bytes of
            one, or a `torch.nn.Module`, which PyTorch's exporter then makes one of.
        output: The plan to write; it appears only after every check has passed.
        resume: An earlier run to go on with, which was asked for the same (see `recall`).
        cache: Folder of compiled kernels and measured trials; the user's cache folder by default.
        check: ``on``: execute every operator and the whole engine, on the GPU where it measured and
            else on the CPU, and compare before anything is written; ``quick``: so at the tuned sizes
            and on one drawn input only (`wpk.checks.scope.Scope`); ``off``: not at all.
        inputs: Inputs of the model, arrays by name, to check on beside drawn ones.
        example_inputs: What to export a module with: tensors in their order, or by name.
        progress: Told of every stage; by default a line on stderr where that is a terminal
            (`wpk.silent`: never, `wpk.ProgressLine`: always).
        on_run: Told of the run in the tuning store, before anything is measured.
        on_rivals: Told of the whole engines that were measured side by side, by name.
        options: Fields of `wpk.options.BuildOptions` and `wpk.options.SearchOptions`, which say what
            each means, e.g. ``target="h200"``, ``precision="fp16"``, ``budget="30m"``.

    Returns:
        What was written.

    Raises:
        WpkError: With what is wrong and what to do; nothing is written then.
    """
    phases = Phases(shown(progress))
    build, search = split_options(options)
    check_skips(build.skip_templates, TEMPLATES)
    scope = scope_of(check, inputs)
    target = choose_target(build.target, Precision(build.precision))
    with model_file(model, example_inputs) as path:
        job = _Job(path, build, target, CacheFolder(cache), phases, scope, inputs)
        run = job.run(search, resume, on_run)
        return job.write(_optimized(job, search, run, phases, on_rivals), output)


def _optimized(
    job: "_Job",
    search: SearchOptions,
    run: "_EnteredRun | None",
    phases: Phases,
    on_rivals: OnRivals | None = None,
) -> PlanBundle:
    """The way of a model to its plan; where there is a run, it measures what the models chose from."""
    with phases.within("loading the model"):
        forms = job.forms()
    lowered = forms.lowered()  # loaded, rewritten by the passes, cut into operators
    require_inputs(job.inputs, input_ports(lowered.program))
    selected_problems(lowered.all_operators, search.operators)  # each pattern names one, somewhere
    run = run if lowered.has_kernels else None  # nothing to measure: no kernel computes anything
    with (
        CompilePool(job.target.arch, cache=job.places.kernels) as pool,
        GpuLease() as lease,
        nullcontext() if run is None else run as entered,
    ):
        shop = _Shop(job, search, pool, lease, entered, phases, on_rivals, forms, phases.begun)
        return with_phases(_built(shop, lowered), phases.seconds())


@dataclass(frozen=True)
class _Shop:
    """What a plan and those of its bodies are made with; see `_optimized`."""

    job: "_Job"
    search: SearchOptions
    pool: CompilePool
    lease: GpuLease
    entered: tuple[Tuning, RunRecord] | None
    phases: Phases
    on_rivals: OnRivals | None
    forms: ModelForms | None
    begun: float | None

    def scored(self, lowered: LoweredModel) -> dict[Problem, Shortlists]:
        """What the models have to say of each problem."""
        job, skipped = self.job, self.job.build.skip_templates
        asked = lowered.program.problems, TEMPLATES, job.target, skipped, job.progress
        return shortlist_problems(*asked, find_pruning(self.search.prune))

    def static(self, lowered: LoweredModel) -> StaticChoices:
        """What the models choose."""
        job, problems = self.job, lowered.program.problems
        skipped, pruning = job.build.skip_templates, find_pruning(self.search.prune)
        asked = problems, TEMPLATES, job.target, self.pool.compile, job.progress
        return search_model(*asked, skip=skipped, pruning=pruning)

    def contest(
        self, lowered: LoweredModel, scored: Mapping[Problem, Shortlists], tuning: Tuning | None
    ) -> FormContest | None:
        """The contest of a model's forms; None where only the usual one is looked at."""
        forms = self.forms
        if forms is None or not competes(self.search, lowered, measured=tuning is not None):
            return None
        skipped, pruning = self.job.build.skip_templates, find_pruning(self.search.prune)
        estimates = Estimates(self.job.target, skipped, pruning, dict(scored))
        budget = None if tuning is None else tuning.budget
        return FormContest(forms.lowered, lowered, estimates, budget, self.job.progress)


def _built(shop: _Shop, lowered: LoweredModel) -> PlanBundle:
    """A lowered model's plan, behind those of its bodies."""
    job, search, lease = shop.job, shop.search, shop.lease
    within = replace(shop, job=job.of_bodies(), on_rivals=None, forms=None, begun=None)
    bodies = {
        model: tuple(_built(within, body) for body in made)
        for model, made in lowered.bodies.items()
    }
    begun = time.monotonic() if shop.begun is None else shop.begun
    program = lowered.program
    problems, patterns = program.problems, matching(program.operators, search.operators)
    named = selected_problems(program.operators, patterns)
    is_measured = bool(problems) and (bool(patterns) or not search.operators)
    run = shop.entered if is_measured else None
    with (
        Beside("references") as references,
        Beside("choices") as choosing,
        Offers(lease, () if run is None else twins_of(program.operators, named)) as offers,
    ):
        tuning = None if run is None else run[0]
        cases = None if tuning is None else cases_of(lowered, tuning.seed, job.progress)
        proof = job.proof(lowered, references, cases or ())
        scored = shop.scored(lowered)
        contest = shop.contest(lowered, scored, tuning)
        found = choosing.submit(partial(choose_among, scored, shop.pool.compile))
        if contest is not None:
            contest.look()  # while kernels compile
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
    job: "_Job",
    lowered: LoweredModel,
    static: StaticChoices,
    bodies: Mapping[str, tuple[PlanBundle, ...]],
) -> tuple[PlanBundle, Choices]:
    """The plan of what the models choose, without evidence."""
    choices = static_choices(static)
    made = choices.implementations, choices.kernels
    return assemble(lowered.program, *made, job.setting(lowered, bodies)), choices


def preview(
    model: Paths, *, cache: Paths | None = None, progress: Progress = silent, **options: Any
) -> Preview:
    """What `optimize` would do with the same arguments; compiles, measures and writes nothing.

    Raises:
        WpkError: With what is wrong and what to do, as `optimize` would.
    """
    build, search = split_options(options)
    check_skips(build.skip_templates, TEMPLATES)
    target = choose_target(build.target, Precision(build.precision))
    job = _Job(Path(model), build, target, CacheFolder(cache), progress)
    tuning = job.tuning(search, None)
    operators, skipped = job.lower().all_operators, build.skip_templates
    asked = operators, target, tuning, search.operators, progress
    return preview_of(*asked, skip=skipped, pruning=find_pruning(search.prune))


def recall(run: str, cache: Paths | None = None) -> dict[str, Any]:
    """What an earlier run was asked to do, as keyword arguments of `optimize`.

    Raises:
        WpkError: There is no such run in the tuning store; names the latest.
    """
    return runs.recall(CacheFolder(cache).store, run)


def rebuild(
    model: Paths,
    output: Paths,
    lock: Paths,
    *,
    cache: Paths | None = None,
    check: CheckMode | str = CheckMode.ON,
    inputs: Sequence[Mapping[str, NDArray[np.generic]]] = (),
    progress: Progress | None = None,
    **options: Unpack[Options],
) -> PlanBundle:
    """Build the plan of a lock file again, without searching or measuring.

    Needs the versions of wpk and NVRTC that wrote the lock; the plan is then the same to the byte.

    Args:
        model: The ONNX file that was locked.
        output: The plan to write; it appears only after every check has passed.
        lock: The lock file.
        cache: Folder of compiled kernels; the user's cache folder by default.
        check: As for `optimize`, on the CPU.
        inputs: See there.
        progress: See there.
        options: What the lock must be for, fields of `wpk.options.BuildOptions`; by default what it
            says. A target that was described in a file needs that file again.

    Raises:
        WpkError: With what is wrong and what to do; nothing is written then.
    """
    locked, scope = read_lock(Path(lock)), scope_of(check, inputs)
    asked, _ = split_options(options)
    require_fit(locked, model_digest(Path(model)), asked, options)
    target = choose_target(options.get("target", locked.target), locked.precision)
    require_target(locked, target)
    job = _Job(
        Path(model), locked.build, target, CacheFolder(cache), shown(progress), scope, inputs
    )
    return job.write(_rebuilt(job, locked), output)


def _rebuilt(job: "_Job", locked: Lock) -> PlanBundle:
    """The locked plan, executed once more on the CPU where it is checked."""
    lowered = job.lower(locked.changed_sites)
    require_inputs(job.inputs, input_ports(lowered.program))
    with CompilePool(job.target.arch, cache=job.places.kernels) as pool:
        return _rebuilt_with(job, lowered, locked, pool)


def _rebuilt_with(
    job: "_Job", lowered: LoweredModel, locked: Lock, pool: CompilePool
) -> PlanBundle:
    within = job.of_bodies()
    bodies = {
        model: tuple(
            _rebuilt_with(within, body, lock, pool)
            for body, lock in zip(made, locked_bodies(locked, lowered.program, model), strict=True)
        )
        for model, made in lowered.bodies.items()
    }
    proof = None if job.scope is None else job.prove(lowered, job.progress)
    implementations = implementations_of(locked, lowered.program, job.target)
    kernels = compile_locked(implementations.values(), pool.compile)
    bundle = assemble(lowered.program, implementations, kernels, job.setting(lowered, bodies))
    bundle = with_evidence(bundle, locked.book)  # what was measured cannot be had again
    require_locked_plan(bundle.plan, locked)
    if proof is not None:
        with open_device("cpu") as device:
            require_passed(verify(bundle, proof, device, job.progress))
    return bundle


_EnteredRun = AbstractContextManager[tuple[Tuning, RunRecord]]
"""A run of the tuning store, and what is left to it, while it is entered."""


@dataclass(frozen=True)
class _Job:
    """What a plan is made of, for, and checked on; see `optimize`."""

    model: Path
    build: BuildOptions
    target: Target
    places: CacheFolder
    progress: Progress
    scope: Scope | None = None
    inputs: Sequence[Mapping[str, NDArray[np.generic]]] = ()

    @property
    def precision(self) -> Precision:
        """What multiplications may use."""
        return Precision(self.build.precision)

    def tuning(self, search: SearchOptions, resume: str | None) -> Tuning | None:
        """How to measure; None where the models choose."""
        tuning = plan_tuning(self.target, search, self.places.store)
        require_measuring(tuning is not None, search.operators, resume)
        return tuning

    def run(
        self, search: SearchOptions, resume: str | None, on_run: Callable[[RunRecord], None] | None
    ) -> _EnteredRun | None:
        """The run that measures, to be entered; None where the models choose."""
        tuning = self.tuning(search, resume)
        if tuning is not None and resume is None:
            tuning = replace(tuning, store=self.places.writable_store)
        build = replace(self.build, target=self.target.name)
        request = runs.request_of(self.model, build, search)
        earlier = None if resume is None else runs.find_same_run(self.places.store, resume, request)
        return None if tuning is None else runs.entered(tuning, request, earlier, on_run)

    def forms(self) -> ModelForms:
        """Load the model, to run the passes on it and to partition it into operators."""
        build = self.build
        clusters = has_clusters(self.target.arch)
        source = Source(
            self.model, build.shapes, self.precision, build.skip_passes, clusters=clusters
        )
        return ModelForms(source, self.progress, fallback=build.falls_back, driven=True)

    def lower(self, changed: Collection[str] = ()) -> LoweredModel:
        """The model as the passes partition it, with the sites of these keys taken back."""
        return self.forms().lowered(frozenset(changed))

    def prove(self, lowered: LoweredModel, tell: Progress) -> PassProof:
        """The proof that the passes changed nothing, where something is checked."""
        return proven(lowered, self.scope or Scope(), tell)

    def proof(
        self, lowered: LoweredModel, beside: Beside, cases: Sequence[Cases]
    ) -> Future[PassProof] | None:
        """Begin references and the proof beside other work; a large model's one after the other, for their memory."""
        is_large = reference_bytes(lowered.program) > MOST_BESIDE_BYTES
        for each in () if is_large else cases:
            each.begin(beside)
        if self.scope is None:
            return None
        proof = beside.submit(partial(self.prove, lowered))
        if is_large:
            awaited(proof, "checking graph passes", self.progress)
        return proof

    def of_bodies(self) -> "_Job":
        """The same for bodies, for whose inputs nobody gives shapes or arrays."""
        scope = None if self.scope is None else scope_of_bodies(self.scope)
        return replace(self, build=replace(self.build, shapes={}), scope=scope, inputs=())

    def setting(
        self, lowered: LoweredModel, bodies: Mapping[str, tuple[PlanBundle, ...]]
    ) -> Setting:
        """What the plan says of its target and its origin, and of the bodies of its control flow."""
        build = self.build
        given = lowered.source.path, lowered, build.shapes, build.skip_passes
        origin = provenance(*given, fallback=build.falls_back)
        return Setting(self.target, self.precision, origin, bodies)

    def write(self, bundle: PlanBundle, output: Paths) -> PlanBundle:
        """Write the plan."""
        write_plan(Path(output), bundle)
        return bundle
