"""``plan.spec``: the part of a plan that is executed, as C++ reads it (docs/spec_format.md)."""

from collections.abc import Iterable, Mapping
from typing import TypeVar

from wpk.launch import Launch
from wpk.libraries import find_library
from wpk.lowering.program import Value
from wpk.plan.binding import element_bytes, order_of
from wpk.plan.plan import Kernel, Plan, Step
from wpk.plan.ports import Port
from wpk.spec import LibraryCall, SpecKind, SpecWriter, element_code, sealed

_T = TypeVar("_T")

_VALUE, _WEIGHT = 0, 1


def spec_of_plan(plan: Plan, weights: Mapping[str, range]) -> bytes:
    """Return the bytes of ``plan.spec``: what has a name in the plan has a number there, in the order of the names.

    Args:
        plan: Without contradictions.
        weights: Where each weight lies in the member ``weights.safetensors``.
    """
    return sealed(SpecKind.PLAN, _Writing(plan, weights).body())


def work_of(step: Step) -> tuple[Launch, ...] | LibraryCall:
    """What computes a step, as specs say it."""
    if step.fallback is not None:  # C++ refuses it by this name, and reads no further
        return LibraryCall(step.candidate.maker.name, step.candidate.maker.version, 0, (), b"")
    image = step.image
    if image is None:
        return step.launches
    recipe = find_library(image.library).recipe(image.problem, image.configuration)
    inputs = tuple(range(len(step.inputs)))
    return LibraryCall(image.library, image.version, step.workspace_bytes, inputs, recipe)


def _in_order(named: Mapping[str, _T]) -> list[_T]:
    return [value for _, value in sorted(named.items())]


def _numbers(named: Iterable[str]) -> dict[str, int]:
    return {name: number for number, name in enumerate(sorted(named))}


class _Writing:
    """The body of a spec, one part after another."""

    def __init__(self, plan: Plan, places: Mapping[str, range]) -> None:
        self._plan, self._places = plan, places
        self._out = SpecWriter(sorted(plan.free))
        self._buffers = _numbers(plan.buffers)
        self._values = _numbers(plan.values)
        self._weights = _numbers(plan.weights)
        self._kernels = _numbers(plan.kernels)
        self._predecessors = order_of(plan).predecessors

    def body(self) -> bytes:
        plan, out = self._plan, self._out
        for text in (plan.wpk, plan.target, plan.arch):
            out.text(text)
        out.sequence(sorted(plan.free), self._dimension)
        out.sequence(_in_order(plan.kernels), self._kernel)
        out.sequence([each.bytes for each in _in_order(plan.buffers)], out.expression)
        out.sequence(_in_order(plan.values), self._value)
        out.sequence(sorted(plan.weights), self._weight)
        out.sequence(plan.inputs, self._port)
        out.sequence(plan.outputs, self._port)
        out.sequence(range(len(plan.steps)), self._step)
        return out.written()

    def _dimension(self, name: str) -> None:
        self._out.text(name)
        for size in (self._plan.free[name], *self._plan.sizes_of(name)):
            self._out.i64(size)

    def _kernel(self, kernel: Kernel) -> None:
        self._out.kernel(kernel.digest, kernel.entry, self._plan.arch, b"")

    def _weight(self, name: str) -> None:
        place = self._places[name]
        self._out.text(name)
        self._out.u64(place.start)
        self._out.u64(len(place))

    def _value(self, value: Value) -> None:
        out = self._out
        out.text(value.name)
        out.u8(element_code(value.dtype))
        out.u32(self._buffers[value.buffer])
        out.i64(value.offset)
        out.sequence((value.leading.expression, *value.shape[1:]), out.expression)
        out.sequence(value.strides, out.i64)
        out.i64(value.padding)

    def _port(self, port: Port) -> None:
        self._out.u32(self._values[port.name])
        self._out.sequence(port.shape, self._out.expression)

    def _step(self, number: int) -> None:
        out, step = self._out, self._plan.steps[number]
        out.text(step.operator.name)
        inputs = [n for n in step.inputs if n in self._weights or n in self._values]
        outputs = [n for n in step.operator.outputs if n in self._values]
        out.sequence(inputs, self._operand)
        out.sequence([self._values[name] for name in outputs], out.u32)
        out.sequence(self._predecessors[number], out.u32)
        out.work(work_of(step), self._kernels, element_bytes(self._plan, step))

    def _operand(self, name: str) -> None:
        is_weight = name in self._weights
        self._out.u8(_WEIGHT if is_weight else _VALUE)
        self._out.u32(self._weights[name] if is_weight else self._values[name])
