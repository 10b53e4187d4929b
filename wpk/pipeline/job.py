"""What a plan is made of, for, and checked on: the arguments of `optimize` and `rebuild`, and what follows from them."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from wpk.assembly import Setting, provenance
from wpk.beside import Beside, awaited
from wpk.checks import PassProof, Scope, proven, scope_of_bodies
from wpk.dtypes import Precision
from wpk.free_memory import free_bytes
from wpk.lowering.lowered_model import LoweredModel, Source
from wpk.lowering.model import ModelForms
from wpk.options import BuildOptions, SearchOptions
from wpk.plan import Paths, PlanBundle, write_plan
from wpk.progress import Progress
from wpk.search.loop import CacheFolder, Tuning, plan_tuning, require_measuring, runs
from wpk.search.store import RunRecord
from wpk.targets import Target, features_of
from wpk.trial_bench import SEEDS, ModelCases, reference_bytes

LEAST_BESIDE_BYTES = 2**31
"""Of a model's references at one seed, up to which its passes are proven while these are held on any machine."""

EnteredRun = AbstractContextManager[tuple[Tuning, RunRecord]]
"""A run of the tuning store, and what is left to it, while it is entered."""


def most_beside_bytes() -> int:
    """Return up to how much a model's references at one seed may take while its passes are proven.

    At all seeds they may take half of the memory that is free; the other half is the proof's.
    """
    return max(LEAST_BESIDE_BYTES, (free_bytes() or 0) // (2 * SEEDS))


@dataclass(frozen=True)
class Job:
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
    ) -> EnteredRun | None:
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
        source = Source(
            self.model,
            build.shapes,
            self.precision,
            build.skip_passes,
            features=features_of(self.target.arch),
        )
        return ModelForms(source, self.progress, fallback=build.falls_back, driven=True)

    def lower(self) -> LoweredModel:
        """The model as the passes partition it, in the form that is asked for."""
        return self.forms().lowered(frozenset(self.build.changed_sites))

    def prove(self, lowered: LoweredModel, tell: Progress) -> PassProof:
        """The proof that the passes changed nothing, where something is checked."""
        return proven(lowered, self.scope or Scope(), tell)

    def proof(
        self, lowered: LoweredModel, beside: Beside, cases: Sequence[ModelCases]
    ) -> Future[PassProof] | None:
        """Begin references and the proof beside other work; where memory is short, a large model's proof comes before all else."""
        is_large = reference_bytes(lowered.program) > most_beside_bytes()
        for each in () if is_large else cases:
            each.begin(beside)
        proof = None if self.scope is None else beside.submit(partial(self.prove, lowered))
        if is_large and proof is not None:
            awaited(proof, "checking graph passes", self.progress)
        for each in cases if is_large else ():
            each.begin(beside)
        return proof

    def of_bodies(self) -> Self:
        """The same for bodies, for whose inputs nobody gives shapes or arrays."""
        scope = None if self.scope is None else scope_of_bodies(self.scope)
        build = replace(self.build, shapes={}, changed_sites=())
        return replace(self, build=build, scope=scope, inputs=())

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
