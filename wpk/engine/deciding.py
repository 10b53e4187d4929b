"""What decides the way that control flow takes, read by the host."""

from collections.abc import Mapping, Sequence

import numpy as np

from wpk.control_flow import Source
from wpk.execution import Device


def condition_of(source: Source, device: Device, inputs: Sequence[int]) -> bool:
    """Whether a condition holds, a constant or what lies at the address of an input."""
    if isinstance(source, int):
        return bool(device.read(inputs[source], 1)[0])
    return bool(source.reshape(()))


def count_of(
    source: Source | str, device: Device, inputs: Sequence[int], dims: Mapping[str, int]
) -> int:
    """A number: a constant, what lies at the address of an input, or a free dimension."""
    if isinstance(source, str):
        return dims[source]
    if isinstance(source, int):
        return int(device.read(inputs[source], 8).view(np.int64)[0])
    return int(source.reshape(()))
