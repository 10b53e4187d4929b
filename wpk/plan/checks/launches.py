"""What launches ask of GPUs from sm_90 on, checked in a plan: clusters, attributes, tensor maps."""

import re
from collections.abc import Iterator, Mapping, Sequence
from math import prod

from wpk.dims import evaluate
from wpk.execution import TensorMap
from wpk.launch import ATTRIBUTES, NO_CLUSTER, Launch, TensorMapArgument
from wpk.plan.binding import bind_map, element_bytes
from wpk.plan.fields import wrong
from wpk.plan.plan import Plan, Step
from wpk.tensor_maps import faults, reach

_MAX_CLUSTER = 16
"""Blocks: CUDA C++ programming guide, "Thread block clusters", with non-portable sizes allowed."""

_FIRST_ARCH = 90
"""Of the architectures that have all of these."""


def check_extensions(
    plan: Plan,
    step: Step,
    launch: Launch,
    rooms: Sequence[int],
    dims: Mapping[str, int],
    path: str,
) -> None:
    """Check what a launch asks for beyond a grid of blocks.

    Args:
        plan: Whose arch must have it.
        step: Which the launch belongs to.
        launch: Whose references were checked.
        rooms: Bytes from where each input of the step begins to the end of what it lies in.
        dims: The free dimensions.
        path: Field of the launch.

    Raises:
        PlanError: Naming the field.
    """
    _check_cluster(launch, dims, path)
    for name in launch.attributes:
        if name not in ATTRIBUTES:
            raise wrong(f"{path}.attributes", f"{name!r} is none of {ATTRIBUTES}")
    if len(set(launch.attributes)) != len(launch.attributes):
        raise wrong(f"{path}.attributes", f"{launch.attributes} says one twice")
    _check_arch(plan.arch, launch, path)
    for index, argument in enumerate(launch.arguments):
        if isinstance(argument, TensorMapArgument):
            field = f"{path}.arguments[{index}]"
            # Buffers and weights begin where addresses are aligned.
            value = plan.values.get(step.inputs[argument.index])
            address = 0 if value is None else value.offset
            size = element_bytes(plan, step)[argument.index]
            tensor = bind_map(argument, address, size, dims)
            _check_tensor_map(tensor, rooms[argument.index], field)


def _check_cluster(launch: Launch, dims: Mapping[str, int], path: str) -> None:
    field = f"{path}.cluster"
    if min(launch.cluster) < 1 or prod(launch.cluster) > _MAX_CLUSTER:
        raise wrong(field, f"{launch.cluster} is not 1 to {_MAX_CLUSTER} blocks")
    grid = tuple(evaluate(size, dims) for size in launch.grid)
    if any(blocks % part for blocks, part in zip(grid, launch.cluster, strict=True)):
        raise wrong(field, f"{launch.cluster} does not divide the grid {grid}")


def _check_arch(arch: str, launch: Launch, path: str) -> None:
    number = re.match(r"sm_(\d+)", arch)
    if number is not None and int(number[1]) >= _FIRST_ARCH:
        return
    for field in _extensions(launch):
        raise wrong(f"{path}.{field}", f"needs sm_{_FIRST_ARCH}, the plan is for {arch}")


def _extensions(launch: Launch) -> Iterator[str]:
    if launch.cluster != NO_CLUSTER:
        yield "cluster"
    if launch.attributes:
        yield "attributes"
    for index, argument in enumerate(launch.arguments):
        if isinstance(argument, TensorMapArgument):
            yield f"arguments[{index}]"


def _check_tensor_map(tensor: TensorMap, room: int, path: str) -> None:
    for field, what in faults(tensor):
        # What belongs to the input is said of the argument that names it.
        named = "index" if field in ("address", "element_bytes") else field
        raise wrong(f"{path}.{named}", what)
    if reach(tensor) > room:
        raise wrong(f"{path}.shape", f"reaches {reach(tensor)} bytes far, {room} are there")
