"""Whether the tensors of a step's problem are the values and weights that the step names.

A kernel touches what its problem's strides reach, and what alignment and padding promise. So each tensor
must lie within the value that it is bound to, and promise no more.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from wpk.dims import evaluate
from wpk.dtypes import DType
from wpk.plan.fields import wrong
from wpk.plan.plan import Plan, Step
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
    """What a step touches of the activations: values that it reads, and the one that it writes."""

    reads: tuple[Touch, ...]
    writes: Touch


def check_operands(
    plan: Plan, step: Step, regions: Mapping[str, Region], dims: Mapping[str, int], path: str
) -> StepTouches:
    """Compare a step's problem with what the step names.

    Args:
        plan: Whose values are right.
        step: Whose problem is right in itself.
        regions: Of the values.
        dims: Values of the free dimensions.
        path: Field of the step.

    Raises:
        PlanError: Naming the field.
    """
    inputs, output = step.operator.problem.accesses()
    if len(step.inputs) != len(inputs):
        raise wrong(f"{path}.inputs", f"{len(step.inputs)} names, the problem has {len(inputs)}")
    if len(step.operator.outputs) != 1 or step.operator.outputs[0] not in plan.values:
        raise wrong(f"{path}.operator.outputs", f"{step.operator.outputs} is not one value")
    if len(step.operator.inputs) != len(inputs):
        raise wrong(f"{path}.operator.inputs", f"{len(step.operator.inputs)} names")
    reads = []
    for index, access in enumerate(inputs):
        field, name = f"{path}.inputs[{index}]", step.inputs[index]
        if name in plan.weights:
            _check_constant(plan, step, index, access, dims, field)
        else:
            reads.append(_read_value(plan, step, index, access, regions, dims, field))
    field, target = f"{path}.operator.outputs[0]", step.operator.outputs[0]
    writes = _within_value(plan, target, output, regions, dims, field)
    for extent, stride in zip(output.extents, output.tensor.strides, strict=True):
        if stride == 0 and evaluate(extent, dims) > 1:
            raise wrong(field, f"the problem writes {extent} elements to one place")
    return StepTouches(tuple(reads), writes)


def _check_constant(
    plan: Plan,
    step: Step,
    index: int,
    access: Access | None,
    dims: Mapping[str, int],
    path: str,
) -> None:
    weight = plan.weights[step.inputs[index]]
    if weight.constant != step.operator.inputs[index]:
        raise wrong(
            path,
            f"holds constant {weight.constant!r}, the operator has {step.operator.inputs[index]!r}",
        )
    if access is None:
        return  # the schedule's packing says how it is read: see `wpk.engine.regenerate`
    _same_type(path, access.tensor.dtype, weight.dtype)
    if weight.packing is not None:
        raise wrong(path, f"is packed as {weight.packing!r}, the problem reads strides")
    _fits(path, access.span_bytes(dims), prod(weight.shape) * weight.dtype.bytes)


def _read_value(
    plan: Plan,
    step: Step,
    index: int,
    access: Access | None,
    regions: Mapping[str, Region],
    dims: Mapping[str, int],
    path: str,
) -> Touch:
    name, expected = step.inputs[index], step.operator.inputs[index]
    if name not in plan.values:
        raise wrong(path, f"no value or weight is called {name!r}")
    if access is None:
        raise wrong(path, f"'{name}' is a value, the problem reads a packed constant")
    if name != expected:
        raise wrong(path, f"{name!r}, the operator has {expected!r}")
    return _within_value(plan, name, access, regions, dims, path)


def _within_value(
    plan: Plan,
    name: str,
    access: Access,
    regions: Mapping[str, Region],
    dims: Mapping[str, int],
    path: str,
) -> Touch:
    """What an access touches of a value, which must hold it."""
    value, tensor = plan.values[name], access.tensor
    _same_type(path, tensor.dtype, value.dtype)
    room = evaluate(plan.buffers[value.buffer].bytes, dims) - value.offset
    _fits(path, access.span_bytes(dims), room)
    if value.offset % tensor.alignment:
        raise wrong(
            path,
            f"the problem counts on {tensor.alignment} bytes, '{name}' begins at {value.offset}",
        )
    sizes = [evaluate(extent, dims) for extent in access.extents]
    found = region(value.offset, tensor.dtype.bytes, sizes, tensor.strides, tensor.padding)
    if found is None or not regions[name].holds(found):
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
