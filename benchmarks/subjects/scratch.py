"""Memory that launches ask for beside their operands."""

from __future__ import annotations

from collections.abc import Sequence

from wpk.dims import evaluate
from wpk.execution import Device
from wpk.launch import CounterArgument, Launch, WorkspaceArgument

_LEAST_BYTES, _COUNTER_BYTES = 4, 4


def scratch(device: Device, launches: Sequence[Launch]) -> tuple[int, int]:
    """Addresses of a workspace and of counters, zero, that launches without free dimensions share in their turns."""
    asked = [argument for launch in launches for argument in launch.arguments]
    workspaces = [evaluate(a.bytes, {}) for a in asked if isinstance(a, WorkspaceArgument)]
    counters = [
        _COUNTER_BYTES * evaluate(a.count, {}) for a in asked if isinstance(a, CounterArgument)
    ]
    return _zeros(device, workspaces), _zeros(device, counters)


def _zeros(device: Device, sizes: Sequence[int]) -> int:
    size = max(_LEAST_BYTES, *sizes, 0)
    address = device.allocate(size)
    device.fill(address, size, 0)
    return address
