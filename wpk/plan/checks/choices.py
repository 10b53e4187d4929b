"""What must hold of a step's candidate: launches that CUDA can make, calls that a library knows."""

from math import prod

from wpk.candidate import Kind
from wpk.execution import LibraryImage
from wpk.extent import MAX_SIZE
from wpk.launch import (
    CounterArgument,
    InputArgument,
    Launch,
    OutputArgument,
    SizeArgument,
    TensorMapArgument,
    WorkspaceArgument,
)
from wpk.libraries import constant_shape, constant_tensor, find_library
from wpk.plan.checks.launches import check_extensions
from wpk.plan.checks.sized_plan import SizedPlan
from wpk.plan.fields import MAX_BYTES, within, wrong
from wpk.plan.plan import Step

# CUDA C++ programming guide, "Technical specifications per compute capability": 5.0 to 12.x.
_MAX_GRID = (MAX_SIZE, 65535, 65535)
_MAX_BLOCK = (1024, 1024, 64)
_MAX_THREADS = 1024
_MAX_SHARED_BYTES = 227 * 1024


def check_candidate(sized: SizedPlan, step: Step, path: str) -> None:
    """Check what computes a step.

    Raises:
        PlanError: Naming the field.
    """
    maker = step.candidate.maker
    if (maker.kind in (Kind.RUNTIME, Kind.CONTROL)) != (step.fallback is not None):
        raise wrong(
            f"{path}.candidate.maker.kind", f"{maker.kind} for {step.operator.problem.family}"
        )
    if (maker.kind is Kind.CONTROL) != bool(step.bodies):
        raise wrong(f"{path}.bodies", f"{len(step.bodies)}, and {maker.name} computes it")
    if step.image is not None:
        _check_call(sized, step, step.image, path)
        return
    if step.workspace_bytes:
        raise wrong(
            f"{path}.workspace_bytes", f"{step.workspace_bytes}, and no library asks for it"
        )
    if step.fallback is not None and step.launches:
        raise wrong(f"{path}.launches", f"{len(step.launches)}, and {maker.name} computes it")
    if step.fallback is None and not step.launches:
        raise wrong(f"{path}.launches", "is empty")
    for index, launch in enumerate(step.launches):
        field = f"{path}.launches[{index}]"
        _check_launch(sized, launch, len(step.inputs), len(step.operator.outputs), field)
        check_extensions(sized, step, launch, field)


def _check_call(sized: SizedPlan, step: Step, image: LibraryImage, path: str) -> None:
    """A library's call; the library itself checks the rest when it is loaded."""
    if step.launches:
        raise wrong(f"{path}.launches", f"{len(step.launches)}, and {image.library} computes it")
    within(f"{path}.workspace_bytes", step.workspace_bytes, 0, MAX_BYTES)
    try:
        library = find_library(image.library)
    except ValueError as error:
        raise wrong(f"{path}.candidate.maker.name", str(error)) from error
    try:
        layout = library.constant_layout(image.problem, image.configuration)
        library.recipe(image.problem, image.configuration)
    except ValueError as error:
        raise wrong(f"{path}.candidate.configuration", str(error)) from error
    if layout is not None:
        tensor = constant_tensor(image.problem, layout)
        weight = sized.plan.weights.get(step.inputs[1])
        seen = "no weight" if weight is None else f"{weight.dtype}, packing {weight.packing}"
        if weight is None or (weight.dtype, weight.packing) != (tensor.dtype, layout):
            raise wrong(
                f"{path}.inputs[1]", f"{seen}; {image.library} reads {tensor.dtype} {layout}"
            )
        needed = prod(constant_shape(image.problem)) * tensor.dtype.bytes
        room = sized.room(weight.name)
        if needed > room:
            raise wrong(
                f"{path}.inputs[1]", f"{image.library} reads {needed} bytes, {room} are there"
            )


def _check_launch(sized: SizedPlan, launch: Launch, inputs: int, outputs: int, path: str) -> None:
    kernel = sized.plan.kernels.get(launch.kernel)
    if kernel is None or kernel.entry != launch.entry:
        raise wrong(f"{path}.kernel", f"no kernel {launch.entry!r} {launch.kernel[:12]!r}")
    for size, limit in zip(launch.grid, _MAX_GRID, strict=True):
        within(f"{path}.grid", sized.evaluate(size), 1, limit)
    threads = 1
    for count, limit in zip(launch.block, _MAX_BLOCK, strict=True):
        within(f"{path}.block", count, 1, limit)
        threads *= count
    within(f"{path}.block", threads, 1, _MAX_THREADS)
    within(f"{path}.shared_bytes", launch.shared_bytes, 0, _MAX_SHARED_BYTES)
    for index, argument in enumerate(launch.arguments):
        field = f"{path}.arguments[{index}]"
        match argument:
            case InputArgument(number) | TensorMapArgument(number):
                within(f"{field}.index", number, 0, inputs - 1)
            case OutputArgument(number):
                within(f"{field}.index", number, 0, outputs - 1)
            case SizeArgument(expression):
                within(f"{field}.expression", sized.evaluate(expression), -MAX_SIZE - 1, MAX_SIZE)
            case WorkspaceArgument(size):
                within(f"{field}.bytes", sized.evaluate(size), 0, MAX_BYTES)
            case CounterArgument(size):
                within(f"{field}.count", sized.evaluate(size), 0, MAX_SIZE)
