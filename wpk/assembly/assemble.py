"""Put a plan together: operators with what computes them, packed weights, kernels, memory."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256

from wpk.assembly.implementation import Implementation, by_runtime
from wpk.assembly.packed_constants import PackedConstants
from wpk.assembly.ports import input_ports, kept_outputs, output_ports
from wpk.assembly.weight_store import WeightStore
from wpk.build import CompiledKernel, compiler_here, count_tensor_core_instructions
from wpk.dtypes import Precision
from wpk.kernel_source import KernelSource
from wpk.lowering.program import Operator, Program
from wpk.plan import (
    SCHEMA,
    Evidence,
    Kernel,
    Memory,
    Order,
    Plan,
    PlanBundle,
    Provenance,
    Step,
    plan_memory,
)
from wpk.problems import Fallback, Problem
from wpk.targets import Target
from wpk.version import VERSION


@dataclass(frozen=True)
class Setting:
    """What a plan is written for.

    Attributes:
        target: The GPU.
        precision: What multiplications may use.
        provenance: Where the model comes from.
    """

    target: Target
    precision: Precision
    provenance: Provenance


def assemble(
    program: Program,
    implementations: Mapping[Problem, Implementation],
    kernels: Mapping[str, CompiledKernel],
    setting: Setting,
    constants: PackedConstants | None = None,
) -> PlanBundle:
    """The plan of a lowered program, still without evidence (`wpk.assembly.evidence`).

    Args:
        program: The model.
        implementations: What computes each of its problems, but for those that ONNX Runtime executes.
        kernels: Compiled kernels by source digest, those of the implementations among them.
        setting: What the plan is written for.
        constants: The program's, as far as other plans of it have packed them.
    """
    constants = constants or PackedConstants(program.constants)
    store = WeightStore(constants)
    implementations = dict(implementations)
    for operator in program.operators:
        if isinstance(operator.problem, Fallback):
            implementations[operator.problem] = by_runtime()
    constants.prepare((each, implementations[each.problem]) for each in program.operators)
    steps = tuple(step_of(each, implementations[each.problem], store) for each in program.operators)
    chosen = {operator.problem: None for operator in program.operators}
    sources = {s.digest: s for problem in chosen for s in implementations[problem].sources}
    order = Order(program.values, program.operators)
    pinned = (*program.inputs, *program.outputs)
    arena = plan_memory(program.buffers, program.values, order, pinned, program.free)
    plan = Plan(
        schema=SCHEMA,
        wpk=VERSION,
        target=setting.target.name,
        arch=setting.target.arch,
        precision=setting.precision,
        free=program.free,
        limits=program.limits,
        inputs=input_ports(program),
        outputs=output_ports(program),
        kept_outputs=kept_outputs(program),
        values=program.values,
        buffers=program.buffers,
        weights=store.weights,
        steps=steps,
        kernels={digest: _kernel(sources[digest], kernels[digest]) for digest in sorted(sources)},
        memory=Memory(arena.bytes, arena.peak_bytes, store.bytes()),
        provenance=setting.provenance,
    )
    cubins = {digest: kernels[digest].cubin for digest in plan.kernels}
    texts = {digest: source.text for digest, source in sources.items()}
    return PlanBundle(plan, store.arrays, cubins, texts, dict(program.models))


def step_of(operator: Operator, implementation: Implementation, store: WeightStore) -> Step:
    """An operator's step; its constants go into the store."""
    return Step(
        operator=operator,
        inputs=store.names(operator, implementation),
        candidate=implementation.candidate,
        launches=implementation.launches,
        workspace_bytes=implementation.workspace_bytes,
        evidence=Evidence(),
    )


def _kernel(source: KernelSource, kernel: CompiledKernel) -> Kernel:
    counted = count_tensor_core_instructions(kernel.cubin).get(source.entry, Counter())
    return Kernel(
        digest=source.digest,
        entry=source.entry,
        compiler=compiler_here(),
        cubin_digest=sha256(kernel.cubin).hexdigest(),
        source_digest=sha256(source.text.encode()).hexdigest(),
        resources=kernel.resources,
        tensor_core_instructions=dict(sorted(counted.items())),
    )
