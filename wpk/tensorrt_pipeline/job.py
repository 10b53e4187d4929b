"""What an engine of TensorRT is made of, for, and checked on."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wpk.assembly import input_ports, provenance
from wpk.checks import Interface, PassProof, check_foreign_engine, require_right
from wpk.codec import encode
from wpk.device import CudaDevice
from wpk.dtypes import Precision
from wpk.engine import random_inputs
from wpk.errors import TargetError
from wpk.lowering.lowered_model import LoweredModel
from wpk.nvinfer import EngineCalls, EngineSession, PlacedEngine
from wpk.options import BuildOptions, SearchOptions, keywords
from wpk.pipeline import optimize
from wpk.plan import Check, CheckMode, PlanBundle, Provenance
from wpk.progress import Progress
from wpk.search.loop import OnRivals, choose_target
from wpk.tensorrt import Binding, BuiltEngine, Request, describe, operator_names
from wpk.tensorrt.choosing import Choices

Arrays = Mapping[str, NDArray[np.generic]]


@dataclass(frozen=True)
class Job:
    """One model, and the engine that is asked for.

    Attributes:
        binding: The TensorRT that is installed.
        lowered: The model.
        request: What TensorRT is asked to build.
        proof: Of the graph passes; None where nothing is checked.
        build: How plans of wpk's own are built.
        search: What searching may cost.
        cache: As for `wpk.optimize`.
        progress: Told of every stage.
    """

    binding: Binding
    lowered: LoweredModel
    request: Request
    proof: PassProof | None
    build: BuildOptions
    search: SearchOptions
    cache: str | os.PathLike[str] | None
    progress: Progress

    def gpu_is_here(self) -> bool:
        """Tell whether the target's GPU is the one of this machine."""
        try:
            return choose_target("auto", Precision.FP32) == self.request.target
        except TargetError:
            return False

    def optimized(
        self,
        path: Path,
        output: Path,
        search: SearchOptions,
        on_rivals: OnRivals | None = None,
    ) -> PlanBundle:
        """A plan of wpk's own, its kernels executed and compared if anything is."""
        own = self.build
        if path != self.lowered.source.path:  # an operator alone, in the form that it has
            own = replace(own, shapes={}, changed_sites=())
        return optimize(
            path,
            output,
            cache=self.cache,
            check=CheckMode.OFF if self.proof is None else CheckMode.QUICK,
            on_rivals=on_rivals,
            **keywords(own, search),
        )

    def sizes(self) -> tuple[int, ...]:
        """Of the free dimension: the smallest, the fastest and the largest; none where nothing is free."""
        sizes = self.request.batches
        several = (sizes.smallest, sizes.fastest, sizes.largest)
        return several if self.lowered.program.free else ()

    def drawn(self, sizes: Sequence[int]) -> Arrays:
        """Draw inputs, of one of the sizes where some are given."""
        program = self.lowered.program
        free = dict.fromkeys(program.free, sizes[0]) if sizes else {}
        ports = Interface(input_ports(program), free, self.request.precision)
        return random_inputs(ports, 0)

    def checked(
        self, engine: BuiltEngine, device: CudaDevice, calls: EngineCalls
    ) -> tuple[Check, ...]:
        """The engine's outputs beside ONNX Runtime's, at every size of its profile."""
        if self.proof is None:
            return ()

        def run(arrays: Arrays) -> Arrays:
            session = EngineSession(self.binding, engine.data)
            with PlacedEngine(session, device, calls, arrays) as placed:
                return placed.run(arrays)

        checks = check_foreign_engine(run, self.proof, self.sizes(), self.progress)
        require_right(checks, f"the engine of {self.binding.title}")
        return (*self.proven(), *checks)

    def proven(self) -> tuple[Check, ...]:
        """What was compared of the graph passes."""
        return () if self.proof is None else self.proof.checks

    def described(
        self,
        engine: BuiltEngine,
        checks: Sequence[Check],
        choices: Choices | None,
        refused: Mapping[str, str],
    ) -> dict[str, Any]:
        """What is written beside the engine."""
        source = self.lowered.source
        origin = provenance(source.path, self.lowered, source.shapes, source.skip)
        told = describe(
            self.binding,
            self.request,
            engine,
            operator_names(self.lowered.graph),
            dict(encode(origin, Provenance)),
        )
        return {
            **told,
            "checks": [encode(each, Check) for each in checks],
            "choices": None if choices is None else choices.as_json(),
            "no_plugin": dict(sorted(refused.items())),
        }
