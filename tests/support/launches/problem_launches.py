"""Launches of any template over a problem's operands on a device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from support.launches.launch_kernels import compiled, place
from wpk.execution import Device
from wpk.plan.binding import StepAddresses, bind_launch
from wpk.problems import Problem, Tensor
from wpk.schedules import packings
from wpk.strided import strided

Array = NDArray[Any]
_POISON = 0xFF


def on_device(
    device: Device, template: Any, problem: Problem, schedule: Any, operands: Sequence[Array]
) -> Callable[[], Array]:
    """Place operands, over their domains; return what launches the kernel and reads its output, in float64.

    A constant matrix is packed as the schedule reads it. The output is poisoned before each launch; of several it is the
    first.
    """
    (source,) = template.instantiate(problem, schedule)
    (launch,) = template.launches(problem, schedule)
    device.load(compiled(source))
    packing = template.packing(problem, schedule)
    memory = [
        packings.pack(packing, values, problem)
        if each is None
        else _laid_out(each.tensor, np.broadcast_to(values, each.sizes))
        for each, values in zip(problem.reads(), operands, strict=True)
        if each is not None or packing is not None
    ]
    poisons = [
        np.full(_span(each.tensor, each.sizes) * each.tensor.dtype.bytes, _POISON, np.uint8)
        for each in problem.writes()
    ]
    output, poison = problem.writes()[0], poisons[0]
    y, sizes = output.tensor, output.sizes
    outputs = tuple(place(device, each) for each in poisons)
    to = outputs[0]
    inputs = tuple(place(device, each) for each in memory)
    addresses = StepAddresses(inputs, tuple(each.itemsize for each in memory), outputs, 0, 0)
    bound = bind_launch(launch, addresses, {})

    def run() -> Array:
        device.write(to, poison)
        device.launch(bound)
        flat = device.read(to, poison.nbytes).view(y.dtype.numpy)
        strides = tuple(stride * flat.itemsize for stride in y.strides)
        return strided(flat, sizes, strides).astype(np.float64)

    return run


def _laid_out(tensor: Tensor, values: Array) -> Array:
    memory = np.zeros(_span(tensor, values.shape), tensor.dtype.numpy)
    strides = tuple(stride * memory.itemsize for stride in tensor.strides)
    strided(memory, values.shape, strides)[...] = values
    return memory


def _span(tensor: Tensor, sizes: tuple[int, ...]) -> int:
    last = sum((n - 1) * s for n, s in zip(sizes, tensor.strides, strict=True))
    return last + 1 + tensor.padding
