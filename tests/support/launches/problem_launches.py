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
from wpk.strided import strided

Array = NDArray[Any]
_POISON = 0xFF


def on_device(
    device: Device, template: Any, problem: Problem, schedule: Any, operands: Sequence[Array]
) -> Callable[[], Array]:
    """Place operands, over their domains; return what launches the kernel and reads its output, in float64.

    The output is poisoned before each launch.
    """
    (source,) = template.instantiate(problem, schedule)
    (launch,) = template.launches(problem, schedule)
    device.load(compiled(source))
    reads, output = problem.accesses()
    memory = [
        _laid_out(each.tensor, np.broadcast_to(values, each.sizes))
        for each, values in zip(reads, operands, strict=True)
        if each is not None
    ]
    y, sizes = output.tensor, output.sizes
    poison = np.full(_span(y, sizes) * y.dtype.bytes, _POISON, np.uint8)
    to = place(device, poison)
    inputs = tuple(place(device, each) for each in memory)
    addresses = StepAddresses(inputs, tuple(each.itemsize for each in memory), (to,), 0, 0)
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
