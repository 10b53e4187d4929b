"""Whether the tensors of a step's problem are the values and weights that the step names.

A kernel touches what its problem's strides reach, and what alignment and padding promise. So each tensor
must lie within the value that it is bound to, and promise no more.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from wpk.dtypes import DType
from wpk.plan.checks.sized_plan import SizedPlan
from wpk.plan.fields import wrong
from wpk.plan.plan import Step
from wpk.plan.regions import Region, region
from wpk.problems import Access


@dataclass(frozen=True)
class Touch:
    """The bytes of a buffer that a step reads or writes.

    Attributes:
        path: The field of the plan that says so.
        name: The value.
        buffer: What it lies in.
        region: The bytes.
    """

    path: str
    name: str
    buffer: str
    region: Region


@dataclass(frozen=True)
class StepTouches:
    """What a step touches of the activations.

    Attributes:
        reads: Values that it reads.
        writes: Those that it writes.
        takes: Names of tensors in the machine's memory that it reads.
        keeps: Names of those that it leaves there.
    """

    reads: tuple[Touch, ...]
    writes: tuple[Touch, ...]
    takes: tuple[str, ...] = ()
    keeps: tuple[str, ...] = ()


def check_operands(sized: SizedPlan, step: Step, path: str) -> StepTouches:
    """Compare a step's problem, which is right in itself, with what the step names.

    Raises:
        PlanError: Naming the field, of which ``path`` is the step's.
    """
    inputs, results = step.operator.problem.reads(), step.operator.problem.writes()
    if len(step.inputs) != len(inputs):
        raise wrong(f"{path}.inputs", f"{len(step.inputs)} names, the problem has {len(inputs)}")
    if len(step.operator.inputs) != len(inputs):
        raise wrong(f"{path}.operator.inputs", f"{len(step.operator.inputs)} names")
    reads, takes = [], []
    for index, access in enumerate(inputs):
        field, name = f"{path}.inputs[{index}]", step.inputs[index]
        if step.fallback is not None and access is None:
            takes.append(_kept(sized, name, field))
        elif step.fallback is None and name in sized.plan.weights:
            _check_constant(sized, step, index, access, field)
        else:
            reads.append(_read_value(sized, step, index, access, field))
    writes, keeps = _written(sized, step, results, f"{path}.operator.outputs")
    return StepTouches(tuple(reads), writes, tuple(takes), keeps)


def _written(
    sized: SizedPlan, step: Step, results: Sequence[Access], path: str
) -> tuple[tuple[Touch, ...], tuple[str, ...]]:
    """What a step writes of the activations, and the names of what it keeps in the machine's memory."""
    outputs = step.operator.outputs
    placed, kept = outputs[: len(results)], outputs[len(results) :]
    missing = any(name not in sized.plan.values for name in placed) or len(placed) < len(results)
    if missing or (kept and step.fallback is None):
        what = "one value" if step.fallback is None else f"{len(results)} values and what is kept"
        raise wrong(path, f"{outputs} is not {what}")
    writes = []
    for index, (name, access) in enumerate(zip(placed, results, strict=True)):
        field = f"{path}[{index}]"
        writes.append(_within_value(sized, name, access, field))
        for extent, stride in zip(access.extents, access.tensor.strides, strict=True):
            if stride == 0 and sized.evaluate(extent) > 1:
                raise wrong(field, f"the problem writes {extent} elements to one place")
    return tuple(writes), tuple(_kept(sized, name, path) for name in kept)


def _kept(sized: SizedPlan, name: str, path: str) -> str:
    """The name of a tensor in the machine's memory, which is no other's."""
    if name in sized.plan.values or name in sized.plan.weights:
        raise wrong(path, f"{name!r} is a value or a weight, and stays in the machine's memory")
    return name


def _check_constant(
    sized: SizedPlan, step: Step, index: int, access: Access | None, path: str
) -> None:
    weight, expected = sized.plan.weights[step.inputs[index]], step.operator.inputs[index]
    if weight.constant != expected:
        raise wrong(path, f"holds constant {weight.constant!r}, the operator has {expected!r}")
    if access is None:
        return  # the schedule's packing says how it is read: see `wpk.engine.regenerate`
    _same_type(path, access.tensor.dtype, weight.dtype)
    if weight.packing is not None:
        raise wrong(path, f"is packed as {weight.packing!r}, the problem reads strides")
    _fits(path, access.span_bytes(sized.dims), sized.room(weight.name))


def _read_value(
    sized: SizedPlan, step: Step, index: int, access: Access | None, path: str
) -> Touch:
    name, expected = step.inputs[index], step.operator.inputs[index]
    if name not in sized.plan.values:
        raise wrong(path, f"no value or weight is called {name!r}")
    if access is None:
        raise wrong(path, f"'{name}' is a value, the problem reads a packed constant")
    if access.tensor.constant or index in step.operator.problem.constant_inputs:
        raise wrong(path, f"'{name}' is a value, the problem reads a constant")
    if name != expected:
        raise wrong(path, f"{name!r}, the operator has {expected!r}")
    return _within_value(sized, name, access, path)


def _within_value(sized: SizedPlan, name: str, access: Access, path: str) -> Touch:
    """What an access touches of a value, which must hold it."""
    value, tensor = sized.plan.values[name], access.tensor
    _same_type(path, tensor.dtype, value.dtype)
    _fits(path, access.span_bytes(sized.dims), sized.room(name))
    if value.offset % tensor.alignment:
        raise wrong(
            path,
            f"the problem counts on {tensor.alignment} bytes, '{name}' begins at {value.offset}",
        )
    sizes = [sized.evaluate(extent) for extent in access.extents]
    found = region(value.offset, tensor.dtype.bytes, sizes, tensor.strides, tensor.padding)
    if found is None or not sized.regions[name].holds(found):
        raise wrong(
            path,
            f"the problem's strides {tensor.strides} over {sizes} with padding {tensor.padding} "
            f"leave '{name}', which has {value.strides} over {value.shape}",
        )
    return Touch(path, name, value.buffer, found)


def _same_type(path: str, expected: DType, seen: DType) -> None:
    if expected is not seen:
        raise wrong(path, f"is {seen}, the problem has {expected}")


def _fits(path: str, needed: int, room: int) -> None:
    if needed > room:
        raise wrong(path, f"the problem reaches {needed} bytes far, {room} are there")
