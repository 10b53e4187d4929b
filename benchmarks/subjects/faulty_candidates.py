"""Candidates that go wrong, made from one that is right: each must cost its own trial and nothing else."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import onnx

from wpk.assembly.implementation import Implementation
from wpk.build import CompiledKernel, CompilePool, KernelCache
from wpk.dtypes import Precision
from wpk.kernel_source import KernelSource
from wpk.lowering.model import lower_model
from wpk.phases import Phases
from wpk.problems import Problem
from wpk.schedules.registry import TEMPLATES
from wpk.search.loop.choices import static_choices
from wpk.search.models.model_search import search_model
from wpk.targets.registry import find_target
from wpk.trial import Trial
from wpk.trial_bench.cases import Case
from wpk.trial_bench.model_cases import ModelCases
from wpk.trial_bench.trials import SEARCHING, TrialRunner, Way

MODEL = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[1, 64, 32, 32] x) => (float[1, 64, 32, 32] y) { y = Sigmoid(x) }
"""
ELEMENTS = 64 * 32 * 32

FIRST = "if (blockIdx.x == 0 && threadIdx.x == 0)"

AFTER = {
    "wrong": f"{FIRST} static_cast<float*>(y)[0] += 0.01f;",
    "slightly wrong": f"{FIRST} static_cast<float*>(y)[0] *= 1.0f + 1e-5f;",
    "NaN": f"{FIRST} static_cast<float*>(y)[0] = 0.0f / (static_cast<float*>(y)[1] * 0.0f);",
    "overwrites its input": f"{FIRST} const_cast<float*>(static_cast<const float*>(x0))[5] = 3.0f;",
    "writes before its output": f"{FIRST} static_cast<float*>(y)[-3] = 3.0f;",
    "writes after its output": f"{FIRST} static_cast<float*>(y)[{ELEMENTS} + 200] = 3.0f;",
    "crashes": f"{FIRST} *reinterpret_cast<volatile int*>(16) = 1;",
}
"""Statements after the right computation."""

HANGS = "for (const long long begin = clock64(); clock64() - begin < 60000000000ll;) {}"
"""Half a minute of an H200: longer than any time limit here, and still over some day."""

ON_THE_GPU_ONLY = {
    "hangs": f"{FIRST} {HANGS}",
    "hangs while it is timed": f"{FIRST} if (atomicAdd(&calls, 1) > 0) {HANGS}",
    "traps": f"{FIRST} __trap();",
}


@dataclass(frozen=True)
class Attempt:
    """A problem with an implementation to try, and its kernels."""

    problem: Problem
    implementation: Implementation
    kernels: dict[str, CompiledKernel]

    def by(self, runner: TrialRunner, way: Way = SEARCHING) -> Trial:
        """What a runner makes of it."""
        return runner.trial(self.problem, self.implementation, self.kernels, way)


@dataclass(frozen=True)
class Kit:
    """A candidate that is right, and the case that it is tried on."""

    case: Case
    good: Attempt
    folder: Path

    def cases(self) -> dict[Problem, Case]:
        """What a runner is given."""
        return {self.good.problem: self.case}

    def with_statement(self, statement: str) -> Attempt:
        """The candidate with a statement at its end."""
        (source,) = self.good.implementation.sources
        head, _, tail = source.text.rpartition("}\n")
        text = f"{head}  {statement}\n}}\n{tail}"
        if "calls" in statement:
            text = text.replace("WPK_KERNEL", "__device__ int calls;\nWPK_KERNEL", 1)
        return self._candidate(KernelSource(source.entry, text))

    def doing_nothing(self) -> Attempt:
        """The candidate with an empty kernel, which waits as one that is launched early has to."""
        (source,) = self.good.implementation.sources
        head, brace, body = source.text.rpartition("{\n  wpk::elementwise")
        assert brace, source.text
        nothing = "{\n  wpk::waitForPrevious();" + body[body.index(";") + 1 :]
        return self._candidate(KernelSource(source.entry, head + nothing))

    def too_large_a_block(self) -> Attempt:
        """The candidate with more shared memory than a GPU has."""
        (launch,) = self.good.implementation.launches
        launches = (replace(launch, shared_bytes=1 << 20),)
        changed = replace(self.good.implementation, launches=launches)
        return replace(self.good, implementation=changed)

    def _candidate(self, source: KernelSource) -> Attempt:
        with CompilePool("sm_90a", cache=KernelCache(self.folder)) as pool:
            (outcome,) = pool.compile([source])
        assert outcome.kernel is not None, outcome.error
        (launch,) = self.good.implementation.launches
        launches = (replace(launch, kernel=source.digest),)
        changed = replace(self.good.implementation, sources=(source,), launches=launches)
        return Attempt(self.good.problem, changed, {source.digest: outcome.kernel})


def make_kit(folder: Path) -> Kit:
    """Build the right candidate; ``folder`` holds what is compiled."""
    model = folder / "sigmoid.onnx"
    onnx.save(onnx.parser.parse_model(MODEL), model)
    target = find_target("h200")
    lowered = lower_model(model, {}, Precision.FP32)
    with CompilePool(target.arch, cache=KernelCache(folder)) as pool:
        problems = [operator.problem for operator in lowered.program.operators]
        static = search_model(problems, TEMPLATES, target, pool.compile, lambda *_: None)
    choices = static_choices(static)
    ((problem, implementation),) = choices.implementations.items()
    kernels = {s.digest: choices.kernels[s.digest] for s in implementation.sources}
    case = ModelCases(lowered, 0, Phases())[problem]
    return Kit(case, Attempt(problem, implementation, kernels), folder)
