"""Execute every operator alone on the reference's values at its inputs, and compare.

What a kernel should not touch is checked too: its output is poisoned before, its padding and its
counters must be zero and everything else in its buffers unchanged after.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from wpk.checks.fallback_check import check_fallback
from wpk.checks.float64_nodes import Array
from wpk.checks.operator_reference import GraphReference, HandedReference, Reference
from wpk.checks.prepared import StepCase, prepare
from wpk.engine import HostSteps
from wpk.errors import LaunchError
from wpk.execution import Bytes, Device, LibraryImage, Work
from wpk.plan import (
    Check,
    Outcome,
    PlanBundle,
    Step,
    StepAddresses,
    Tensors,
    array_bytes,
    bind_step,
    counter_bytes,
    element_bytes,
    tensors_of,
    workspace_bytes,
)
from wpk.progress import Progress

_POISON = 0xFF  # NaN in every floating type, -1 in integers
_ALIGNMENT = 256


@dataclass(frozen=True)
class OperatorCheck:
    """The outcome for one step.

    Attributes:
        name: Name of the operator.
        check: What a plan and a report say about it.
        worst: Largest error in units of its tolerance, or what it is at most; NaN where there is no tolerance: ONNX
            Runtime executes the step.
        error: What the device reported; None where the step was executed to its end.
    """

    name: str
    check: Check
    worst: float
    error: LaunchError | None = None


def check_operators(
    bundle: PlanBundle,
    reference: GraphReference,
    inputs: Mapping[str, Array],
    dims: Mapping[str, int],
    device: Device,
    hosts: HostSteps,
    memory: dict[str, Array],
    progress: Progress,
) -> Iterator[OperatorCheck]:
    """Yield the outcome of every step.

    Args:
        bundle: The plan; its kernels are loaded on the device.
        reference: The reference of the optimized graph that the plan's operators come from.
        inputs: The model's inputs.
        dims: Values of the free dimensions.
        device: Executes the kernels.
        hosts: Executes what no kernel computes, and control flow.
        memory: Filled with the reference's tensors as they lie in memory, rounded.
        progress: Told of every step.
    """
    steps = bundle.plan.steps
    runner = StepRunner(tensors_of(bundle), dims, device)
    for done, (step, result) in enumerate(_in_order(steps, reference, inputs, memory)):
        progress("checking operators", done, len(steps))
        if isinstance(result, HandedReference):
            check = check_fallback(step, hosts, result, memory, dims, bundle.plan.precision)
            yield OperatorCheck(step.operator.name, check, float("nan"))
        else:
            yield runner.check(step, runner.prepare(step, memory, result))
    progress("checking operators", len(steps), len(steps))


def _in_order(
    steps: Sequence[Step],
    reference: GraphReference,
    inputs: Mapping[str, Array],
    memory: dict[str, Array],
) -> Iterator[tuple[Step, Reference | None]]:
    """Steps with what they should give as soon as that is known, then those that copy values."""
    by_call = {step.operator.call: step for step in steps if step.operator.call}
    for node in reference.begin(inputs, memory):
        step = by_call.get(node.name)
        if step is None:  # a view: no step computes it
            reference.evaluate(node, memory)
        else:
            yield step, reference.of(node, memory)
    yield from ((step, None) for step in steps if not step.operator.call)


@dataclass(frozen=True)
class DeviceStep:
    """A step on a device.

    Attributes:
        works: The step's launches, or its call of a library.
        buffers: Addresses of the buffers' images by name.
        counters: Address of its counters.
        allocations: Bytes of every allocation by its address.
    """

    works: tuple[Work, ...]
    buffers: dict[str, int]
    counters: int
    allocations: dict[int, int]


class StepRunner:
    """Executes single steps on memory that holds the reference's values."""

    def __init__(self, tensors: Tensors, dims: Mapping[str, int], device: Device) -> None:
        """Prepare; the kernels of the steps are loaded on the device."""
        self.tensors, self.dims, self.device = tensors, dims, device

    def prepare(
        self, step: Step, memory: Mapping[str, Array], result: Reference | None
    ) -> StepCase:
        """What a step is given and should give; the same for all candidates of an operator."""
        return prepare(self.tensors, step, self.dims, memory, result)

    def check(self, step: Step, prepared: StepCase, *, quick: bool = False) -> OperatorCheck:
        """One step: against the reference, or for a copy against the bytes that it should give.

        Args:
            step: Whose tensors these are.
            prepared: What `prepare` gave for it.
            quick: Not to measure the error of a step that is right.
        """
        try:
            after, counting = self.execute(step, prepared.images)
        except LaunchError as error:
            outcome = _outcome(step, False, error.what, float("inf"))
            return replace(outcome, error=error)
        if quick and not counting and prepared.fits(after):
            outcome = _outcome(step, True, "every element is within its tolerance", 1.0)
        else:
            outcome = _judge(step, prepared, after, counting)
        if step.image is not None and self.device.executes_source:
            return _by_definition(step.image, outcome)
        return outcome

    def execute(self, step: Step, images: Mapping[str, Bytes]) -> tuple[dict[str, Bytes], int]:
        """Run the step's launches on copies of the images.

        Returns:
            The images as they are after, and how many counters were left that are not zero.
        """
        with self.placed(step, images) as placed:
            for work in placed.works:
                self.device.launch(work)
            after = {
                name: self.device.read(placed.buffers[name], image.size)
                for name, image in images.items()
            }
            size = placed.allocations[placed.counters]
            counters = self.device.read(placed.counters, size)
            return after, int(np.count_nonzero(counters.view(np.int32)))

    @contextmanager
    def placed(self, step: Step, images: Mapping[str, Bytes]) -> Iterator[DeviceStep]:
        """Hold copies of the images, weights and scratch memory on the device as long as it lasts."""
        device, allocated = self.device, dict[int, int]()

        def reserve(size: int) -> int:
            address = device.allocate(max(size, _ALIGNMENT))
            allocated[address] = max(size, _ALIGNMENT)
            return address

        def place(data: Bytes) -> int:
            address = reserve(data.nbytes)
            device.write(address, data)
            return address

        def filled(size: int, byte: int) -> int:
            address = reserve(size)
            device.fill(address, allocated[address], byte)
            return address

        try:
            where = {name: place(image) for name, image in images.items()}
            addresses = StepAddresses(
                tuple(self.address(n, where) or place(self.weight(n)) for n in step.inputs),
                element_bytes(self.tensors, step),
                tuple(self.address(n, where) for n in step.operator.outputs),
                filled(workspace_bytes(step, self.dims), _POISON),
                filled(counter_bytes(step, self.dims), 0),
            )
            works = bind_step(step, addresses, self.dims)
            yield DeviceStep(works, where, addresses.counters, allocated)
        finally:
            for address in allocated:
                device.free(address)

    def address(self, name: str, where: Mapping[str, int]) -> int:
        """Return the address of a value; 0 for a weight."""
        value = self.tensors.values.get(name)
        return 0 if value is None else where[value.buffer] + value.offset

    def weight(self, name: str) -> Bytes:
        return np.frombuffer(array_bytes(self.tensors.arrays[name]), np.uint8)


def _judge(
    step: Step, prepared: StepCase, after: Mapping[str, Bytes], counting: int
) -> OperatorCheck:
    found, stray = prepared.compare(after), prepared.stray(after)
    padding = prepared.dirty_padding(after)
    faults = []
    if not found.passed:
        faults.append(f"{found.wrong} of {found.total} elements are wrong: {found.example}")
    if stray:
        faults.append(f"{stray} bytes outside the output were written")
    if padding:
        faults.append(f"{padding} elements of padding are not zero")
    if counting:
        faults.append(f"{counting} counters were not left zero: the next launch would go wrong")
    most = "at most " if found.at_most else ""
    detail = "; ".join(faults) or f"worst error {most}{found.worst:.3f} of the tolerance"
    return _outcome(step, not faults, detail, found.worst)


def _by_definition(image: LibraryImage, outcome: OperatorCheck) -> OperatorCheck:
    """Say that no library was executed: the CPU computes a library's step by its definition."""
    detail = (
        f"{image.library} {image.version} is not executed here; the step's definition in its "
        f"place: {outcome.check.detail}"
    )
    return replace(outcome, check=replace(outcome.check, detail=detail))


def _outcome(step: Step, right: bool, detail: str, worst: float) -> OperatorCheck:
    outcome = Outcome.OK if right else Outcome.FAILED
    return OperatorCheck(step.operator.name, Check("float64 reference", outcome, detail), worst)
