"""What launches ask of GPUs from sm_90 on, checked in a plan: clusters, attributes, tensor maps."""

import re
from collections.abc import Iterator
from math import prod

from wpk.execution import TensorMap
from wpk.launch import ATTRIBUTES, EARLY_LAUNCH, NO_CLUSTER, Launch, TensorMapArgument
from wpk.plan.binding import bind_map, element_bytes
from wpk.plan.checks.sized_plan import SizedPlan
from wpk.plan.fields import wrong
from wpk.plan.plan import Step
from wpk.tensor_maps import faults, reach

_MAX_CLUSTER = 16
"""Blocks: CUDA C++ programming guide, "Thread block clusters", with non-portable sizes allowed."""

_FIRST_ARCH = 90
"""Of the architectures that have all of these."""


def check_extensions(sized: SizedPlan, step: Step, launch: Launch, path: str) -> None:
    """Check what a launch asks for beyond a grid of blocks, and what the plan's arch must have.

    Raises:
        PlanError: Naming the field, of which ``path`` is the launch's.
    """
    _check_cluster(sized, launch, path)
    for name in launch.attributes:
        if name not in ATTRIBUTES:
            raise wrong(f"{path}.attributes", f"{name!r} is none of {ATTRIBUTES}")
    if len(set(launch.attributes)) != len(launch.attributes):
        raise wrong(f"{path}.attributes", f"{launch.attributes} says one twice")
    _check_arch(sized.plan.arch, launch, path)
    for index, argument in enumerate(launch.arguments):
        if isinstance(argument, TensorMapArgument):
            field = f"{path}.arguments[{index}]"
            # Buffers and weights begin where addresses are aligned.
            name = step.inputs[argument.index]
            address = 0 if name in sized.plan.weights else sized.plan.values[name].offset
            size = element_bytes(sized.plan, step)[argument.index]
            tensor = bind_map(argument, address, size, sized.dims)
            _check_tensor_map(tensor, sized.room(name), field)


def _check_cluster(sized: SizedPlan, launch: Launch, path: str) -> None:
    field = f"{path}.cluster"
    if min(launch.cluster) < 1 or prod(launch.cluster) > _MAX_CLUSTER:
        raise wrong(field, f"{launch.cluster} is not 1 to {_MAX_CLUSTER} blocks")
    grid = tuple(map(sized.evaluate, launch.grid))
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
    if EARLY_LAUNCH in launch.attributes:
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
