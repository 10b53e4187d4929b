"""What must hold within a plan before anything of it is executed."""

import re
from collections.abc import Iterable
from math import prod

from wpk.dims import DimExpr, evaluate
from wpk.errors import EngineError
from wpk.launch import (
    CounterArgument,
    InputArgument,
    Launch,
    OutputArgument,
    SizeArgument,
    TensorMapArgument,
    WorkspaceArgument,
)
from wpk.libraries.offer import constant_layout, constant_shape, constant_tensor
from wpk.lowering.program import Value
from wpk.plans.codec import wrong
from wpk.plans.footprint import accesses, span_bytes
from wpk.plans.launch_checks import check_extensions
from wpk.plans.measurement_checks import check_measurements
from wpk.plans.plan import LibraryChoice, Plan, Port, Step

MAX_BYTES = 2**40
"""No buffer, workspace or weight of a model that fits a GPU is larger."""

# CUDA C++ programming guide, "Technical specifications per compute capability": 5.0 to 12.x.
_MAX_GRID = (2**31 - 1, 65535, 65535)
_MAX_BLOCK = (1024, 1024, 64)
_MAX_THREADS = 1024
_MAX_SHARED_BYTES = 227 * 1024

_DIGEST = re.compile(r"[0-9a-f]{64}")
_ARCH = re.compile(r"sm_\d+[af]?")


def check_plan(plan: Plan) -> None:
    """Check names, references, sizes, offsets, strides and launches at the tuned sizes.

    Raises:
        PlanError: Naming the field.
    """
    if _ARCH.fullmatch(plan.arch) is None:
        raise wrong("plan.arch", f"{plan.arch!r} is no architecture")
    for name, size in plan.free.items():
        _within(f"plan.free.{name}", size, 1, 2**31 - 1)
    _check_names(plan)
    check_measurements(plan)
    check_sizes(plan, plan.free)


def check_sizes(plan: Plan, dims: dict[str, int]) -> None:
    """Check everything that depends on the free dimensions, for one assignment of them.

    Raises:
        PlanError: Naming the field.
    """
    try:
        for name, buffer in plan.buffers.items():
            _within(f"plan.buffers.{name}.bytes", evaluate(buffer.bytes, dims), 0, MAX_BYTES)
        for name, value in plan.values.items():
            _check_value(plan, value, dims, f"plan.values.{name}")
        for index, step in enumerate(plan.steps):
            _check_step(plan, step, dims, f"plan.steps[{index}]")
    except EngineError as error:
        raise wrong("plan", error.what) from error
    except ZeroDivisionError as error:
        raise wrong("plan", "a dimension expression divides by zero") from error


def _check_names(plan: Plan) -> None:
    for section in ("values", "buffers", "weights"):
        for name, entry in getattr(plan, section).items():
            if entry.name != name:
                raise wrong(f"plan.{section}.{name}.name", f"is {entry.name!r}")
    both = sorted(set(plan.values) & set(plan.weights))
    if both:
        raise wrong(f"plan.weights.{both[0]}", "a value has the same name")
    for name, weight in plan.weights.items():
        _digest(f"plan.weights.{name}.digest", weight.digest)
    for digest, kernel in plan.kernels.items():
        path = f"plan.kernels.{digest[:12]}"
        _digest(path, digest)
        if kernel.digest != digest:
            raise wrong(f"{path}.digest", f"is {kernel.digest[:12]!r}")
        _digest(f"{path}.cubin_digest", kernel.cubin_digest)
        _digest(f"{path}.source_digest", kernel.source_digest)
    _unique("plan.steps", (step.operator.name for step in plan.steps))
    for section, ports in (("inputs", plan.inputs), ("outputs", plan.outputs)):
        _unique(f"plan.{section}", (port.name for port in ports))
        for index, port in enumerate(ports):
            _check_port(plan, port, f"plan.{section}[{index}]")


def _check_port(plan: Plan, port: Port, path: str) -> None:
    if port.name not in plan.values:
        raise wrong(f"{path}.name", f"no value is called {port.name!r}")
    value = plan.values[port.name]
    if value.dtype is not port.dtype:
        raise wrong(f"{path}.dtype", f"{port.dtype}, its value has {value.dtype}")
    sizes = tuple(_at(path, size, plan.free) for size in port.shape)
    if sizes != value.logical_shape:
        raise wrong(f"{path}.shape", f"{sizes}, its value has {value.logical_shape}")
    for size in port.shape[1:]:
        if not isinstance(size, int):
            raise wrong(f"{path}.shape", "only the leading dimension may be free")


def _check_value(plan: Plan, value: Value, dims: dict[str, int], path: str) -> None:
    if value.buffer not in plan.buffers:
        raise wrong(f"{path}.buffer", f"no buffer is called {value.buffer!r}")
    if not value.shape or len(value.shape) != len(value.strides):
        raise wrong(f"{path}.strides", f"{value.strides} for shape {value.shape}")
    for size in value.shape:
        _within(f"{path}.shape", size, 1, 2**40)
    for stride in value.strides:
        _within(f"{path}.strides", stride, 0, 2**40)
    _within(f"{path}.padding", value.padding, 0, 2**20)
    _within(f"{path}.leading.factor", value.leading.factor, 1, 2**40)
    if value.shape[0] != value.leading.value:
        raise wrong(f"{path}.leading", f"{value.leading.value}, the shape begins {value.shape[0]}")
    if value.offset % value.dtype.bytes:
        raise wrong(f"{path}.offset", f"{value.offset} is not aligned to {value.dtype.bytes} bytes")
    size = evaluate(plan.buffers[value.buffer].bytes, dims)
    _within(f"{path}.offset", value.offset, 0, size)
    leading = evaluate(value.leading.expression, dims)
    extents = (leading, *value.shape[1:])
    last = sum((n - 1) * s for n, s in zip(extents, value.strides, strict=True))
    end = value.offset + (last + 1 + value.padding) * value.dtype.bytes
    if end > size:
        raise wrong(path, f"ends at byte {end} of buffer '{value.buffer}', which has {size}")


def _check_step(plan: Plan, step: Step, dims: dict[str, int], path: str) -> None:
    inputs, output = accesses(step.operator.problem)
    if len(step.inputs) != len(inputs):
        raise wrong(f"{path}.inputs", f"{len(step.inputs)} names, the problem has {len(inputs)}")
    if len(step.operator.outputs) != 1 or step.operator.outputs[0] not in plan.values:
        raise wrong(f"{path}.operator.outputs", f"{step.operator.outputs} is not one value")
    for index, (name, access) in enumerate(zip(step.inputs, inputs, strict=True)):
        field = f"{path}.inputs[{index}]"
        if name not in plan.values and name not in plan.weights:
            raise wrong(field, f"no value or weight is called {name!r}")
        if access is not None:
            _fits(field, span_bytes(access, dims), _room(plan, name, dims))
    target = step.operator.outputs[0]
    _fits(f"{path}.operator.outputs[0]", span_bytes(output, dims), _room(plan, target, dims))
    if isinstance(step.choice, LibraryChoice):
        _check_call(plan, step, step.choice, path)
        return
    if not step.launches:
        raise wrong(f"{path}.launches", "is empty")
    rooms = [_room(plan, name, dims) for name in step.inputs]
    for index, launch in enumerate(step.launches):
        field = f"{path}.launches[{index}]"
        _check_launch(plan, launch, len(inputs), dims, field)
        check_extensions(plan, step, launch, rooms, dims, field)


def _check_call(plan: Plan, step: Step, choice: LibraryChoice, path: str) -> None:
    """A library's call; the library itself checks the rest when it is loaded."""
    if step.launches:
        raise wrong(f"{path}.launches", f"{len(step.launches)}, and {choice.library} computes it")
    _within(f"{path}.choice.workspace_bytes", choice.workspace_bytes, 0, MAX_BYTES)
    problem = step.operator.problem
    try:
        layout = constant_layout(problem, choice.configuration)
    except ValueError as error:
        raise wrong(f"{path}.choice.configuration", str(error)) from error
    if layout != choice.layout:
        raise wrong(f"{path}.choice.layout", f"{choice.layout}, the configuration says {layout}")
    if layout is not None:
        tensor = constant_tensor(problem, layout)
        weight = plan.weights.get(step.inputs[1])
        seen = "no weight" if weight is None else f"{weight.dtype}, packing {weight.packing}"
        if weight is None or (weight.dtype, weight.packing) != (tensor.dtype, layout):
            raise wrong(
                f"{path}.inputs[1]", f"{seen}; {choice.library} reads {tensor.dtype} {layout}"
            )
        needed = prod(constant_shape(problem)) * tensor.dtype.bytes
        _fits(f"{path}.inputs[1]", needed, _room(plan, weight.name, {}))


def _room(plan: Plan, name: str, dims: dict[str, int]) -> int:
    """Bytes from where a value or weight begins to the end of what it lies in."""
    if name in plan.weights:
        weight = plan.weights[name]
        count = 1
        for size in weight.shape:
            count *= size
        return count * weight.dtype.bytes
    value = plan.values[name]
    return evaluate(plan.buffers[value.buffer].bytes, dims) - value.offset


def _check_launch(plan: Plan, launch: Launch, inputs: int, dims: dict[str, int], path: str) -> None:
    kernel = plan.kernels.get(launch.kernel)
    if kernel is None or kernel.entry != launch.entry:
        raise wrong(f"{path}.kernel", f"no kernel {launch.entry!r} {launch.kernel[:12]!r}")
    for size, limit in zip(launch.grid, _MAX_GRID, strict=True):
        _within(f"{path}.grid", evaluate(size, dims), 1, limit)
    threads = 1
    for count, limit in zip(launch.block, _MAX_BLOCK, strict=True):
        _within(f"{path}.block", count, 1, limit)
        threads *= count
    _within(f"{path}.block", threads, 1, _MAX_THREADS)
    _within(f"{path}.shared_bytes", launch.shared_bytes, 0, _MAX_SHARED_BYTES)
    for index, argument in enumerate(launch.arguments):
        field = f"{path}.arguments[{index}]"
        match argument:
            case InputArgument(number) | TensorMapArgument(number):
                _within(f"{field}.index", number, 0, inputs - 1)
            case OutputArgument(number):
                _within(f"{field}.index", number, 0, 0)
            case SizeArgument(expression):
                _within(f"{field}.expression", evaluate(expression, dims), -(2**31), 2**31 - 1)
            case WorkspaceArgument(size):
                _within(f"{field}.bytes", evaluate(size, dims), 0, MAX_BYTES)
            case CounterArgument(size):
                _within(f"{field}.count", evaluate(size, dims), 0, 2**31 - 1)


def _fits(path: str, needed: int, room: int) -> None:
    if needed > room:
        raise wrong(path, f"the problem reaches {needed} bytes far, {room} are there")


def _within(path: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise wrong(path, f"{value} is not within {low} to {high}")


def _digest(path: str, digest: str) -> None:
    if _DIGEST.fullmatch(digest) is None:
        raise wrong(path, f"{digest[:70]!r} is no SHA-256")


def _unique(path: str, names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise wrong(path, f"two are called {name!r}")
        seen.add(name)


def _at(path: str, size: DimExpr, dims: dict[str, int]) -> int:
    try:
        return evaluate(size, dims)
    except EngineError as error:
        raise wrong(f"{path}.shape", error.what) from error
