"""Put a plan together: operators with their choices, packed weights, kernels, memory."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wpk.build import CompiledKernel, compiler_here, count_tensor_core_instructions
from wpk.dtypes import Precision, from_numpy
from wpk.kernel_source import KernelSource
from wpk.libraries import constant_layout, lay_out
from wpk.lowering.memory import plan_memory
from wpk.lowering.order import Order
from wpk.lowering.program import Operator, Program
from wpk.performance.bound import Bound
from wpk.plans.measured_evidence import with_measurement
from wpk.plans.plan import (
    SCHEMA,
    Choice,
    Evidence,
    Funnel,
    Kernel,
    LibraryChoice,
    Memory,
    Plan,
    PlanBundle,
    Step,
    Weight,
)
from wpk.plans.ports import input_ports, output_ports
from wpk.plans.provenance import Provenance
from wpk.plans.weights_file import array_bytes
from wpk.schedules.packings import pack
from wpk.search.library_pick import LibraryPick
from wpk.search.model_search import Found
from wpk.search.record import SearchRecord
from wpk.search.static_search import Choice as Searched
from wpk.targets.target import Target
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


def assemble(program: Program, found: Found, setting: Setting) -> PlanBundle:
    """The plan of a lowered program with the choices of a search.

    A constant is stored once for each packing that its readers ask for.
    """
    store = _WeightStore(program.constants)
    steps, sources = [], dict[str, KernelSource]()
    for operator in program.operators:
        if operator.problem in found.picks:
            step = _library_step(operator, found.library[operator.problem], store)
        else:
            searched = found.choices[operator.problem]
            step = _step(operator, searched, store)
            sources |= {source.digest: source for source in searched.finalist.sources}
        steps.append(with_measurement(step, found))
    kernels = {
        digest: _kernel(source, found.kernels[digest]) for digest, source in sorted(sources.items())
    }
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
        inputs=input_ports(program),
        outputs=output_ports(program),
        values=program.values,
        buffers=program.buffers,
        weights=store.weights,
        steps=tuple(steps),
        kernels=kernels,
        memory=Memory(arena.arena_bytes, arena.peak_bytes, store.bytes()),
        provenance=setting.provenance,
    )
    cubins = {digest: found.kernels[digest].cubin for digest in kernels}
    return PlanBundle(plan, store.arrays, cubins, {d: s.text for d, s in sources.items()})


class _WeightStore:
    def __init__(self, constants: Mapping[str, NDArray[Any]]) -> None:
        self.constants = constants
        self.weights: dict[str, Weight] = {}
        self.arrays: dict[str, NDArray[np.generic]] = {}

    def names(
        self, operator: Operator, packing: str | None, pack_one: Callable[[NDArray[Any]], Any]
    ) -> tuple[str, ...]:
        """The operator's inputs; constants as they are stored, the second one packed."""
        return tuple(
            name
            if name not in self.constants
            else self._name(name, None, self.constants[name])
            if index != 1 or packing is None
            else self._name(name, packing, pack_one(self.constants[name]))
            for index, name in enumerate(operator.inputs)
        )

    def _name(self, constant: str, packing: str | None, packed: NDArray[Any]) -> str:
        """Name of the stored weight for a constant in a packing, stored on first use."""
        packed = np.ascontiguousarray(packed).reshape(packed.shape or (1,))
        base = constant if packing is None else f"{constant}|{packing}"
        for name in (base, *(f"{base}|{i}" for i in range(2, len(self.weights) + 3))):
            known = self.weights.get(name)
            if known is None:
                return self._add(name, constant, packing, packed)
            if known.digest == _digest(packed) and known.shape == packed.shape:
                return name
        raise AssertionError("one name more than there are weights is always free")

    def _add(self, name: str, constant: str, packing: str | None, packed: NDArray[Any]) -> str:
        dtype = from_numpy(packed.dtype)
        if dtype is None:
            raise TypeError(f"packing {packing} of {constant} gave element type {packed.dtype}")
        self.weights[name] = Weight(name, constant, packing, dtype, packed.shape, _digest(packed))
        self.arrays[name] = packed
        return name

    def bytes(self) -> int:
        return sum(array.nbytes for array in self.arrays.values())


def _digest(array: NDArray[Any]) -> str:
    return sha256(array_bytes(array)).hexdigest()


def _step(operator: Operator, searched: Searched, store: _WeightStore) -> Step:
    template, schedule = searched.finalist.template, searched.finalist.scored.schedule
    packing = template.packing(operator.problem, schedule)
    inputs = store.names(
        operator, packing, lambda array: pack(str(packing), array, operator.problem)
    )
    choice = Choice(template.name, template.version, schedule.parameters())
    scored = searched.finalist.scored
    evidence = _evidence(searched.bound, searched.record, scored.estimate, scored.score)
    return Step(operator, inputs, choice, searched.finalist.launches, evidence)


def _library_step(operator: Operator, picked: LibraryPick, store: _WeightStore) -> Step:
    image = picked.image
    layout = constant_layout(operator.problem, image.configuration)
    inputs = store.names(operator, layout, lambda array: lay_out(str(layout), array))
    choice = LibraryChoice(
        image.library, image.version, image.configuration, layout, picked.workspace_bytes
    )
    return Step(operator, inputs, choice, (), _evidence(picked.bound, picked.record, 0.0, 0.0))


def _evidence(limit: Bound, record: SearchRecord, estimate: float, score: float) -> Evidence:
    refused = {r.template: r.reason for r in record.refusals if not r.schedule}
    funnels = tuple(
        Funnel(f.template, "", f.space, f.legal, f.kept, record.finalists.count(f.template))
        for f in record.funnels
    )
    return Evidence(
        bound_seconds=limit.seconds,
        bound_by=limit.limiter,
        estimate_seconds=estimate,
        score=score,
        funnels=(*funnels, *(Funnel(t, why, 0, 0, 0, 0) for t, why in refused.items())),
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
