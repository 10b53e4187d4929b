"""Which inputs and outputs of a model may lie in a caller's memory instead of the engine's, and how."""

from collections.abc import Mapping
from itertools import combinations

from wpk.engine.placement import footprint
from wpk.errors import EngineError
from wpk.plan import Plan, Port


def replaceable(plan: Plan, dims: Mapping[str, int]) -> frozenset[str]:
    """Names of the ports whose buffers hold nothing that lies outside of the port.

    Lowering makes ports dense, so a dense array of the caller's can take the buffer's place. Not
    where an output is a part of something larger, or two ports share a buffer: these are copied.

    Args:
        plan: Whose ports.
        dims: Sizes of the free dimensions.
    """
    ports = (*plan.inputs, *plan.outputs)
    buffers = [plan.values[port.name].buffer for port in ports]
    names = (name for step in plan.steps for name in step.operator.outputs)
    written = {plan.values[name].buffer for name in names if name in plan.values}
    inputs = {port.name for port in plan.inputs}
    return frozenset(
        port.name
        for port, buffer in zip(ports, buffers, strict=True)
        if buffers.count(buffer) == 1
        and not (port.name in inputs and buffer in written)
        and _is_alone(plan, port, dims)
    )


def require_apart(
    sources: Mapping[str, int], targets: Mapping[str, int], sizes: Mapping[str, int]
) -> None:
    """Check that no output lies in the memory of another port.

    Args:
        sources: Address of each input.
        targets: Address of each output, which may have an input's name.
        sizes: Bytes of each.

    Raises:
        EngineError: One does.
    """
    written = [(name, place, True) for name, place in targets.items()]
    read = [(name, place, False) for name, place in sources.items()]
    for one, other in combinations((*read, *written), 2):
        low, high = sorted((one, other), key=lambda port: port[1])
        if (one[2] or other[2]) and low[1] + sizes[low[0]] > high[1]:
            raise EngineError(
                f"'{one[0]}' and '{other[0]}' share memory, and a run writes while it reads",
                fix="give each output memory of its own",
            )


def _is_alone(plan: Plan, port: Port, dims: Mapping[str, int]) -> bool:
    own = plan.values[port.name]
    end = own.offset + footprint(own, dims)
    return all(
        own.offset <= value.offset and value.offset + footprint(value, dims) <= end
        for value in plan.values.values()
        if value.buffer == own.buffer
    )
