"""Device memory of a plan: every buffer in time, and at its place in the arena."""

from dataclasses import dataclass

from wpk.plan import Memory, Order, Plan, arena, lifetimes, pieces, workspace_bytes


@dataclass(frozen=True)
class BlockFacts:
    """A buffer's place in the arena and in time.

    Attributes:
        name: The buffer.
        values: What lies in it.
        kind: Family of the operator that writes it first; ``input`` for the model's inputs.
        offset: Bytes from the start of the arena.
        bytes: Its size.
        first: First step that it lives in; -1 where it is there before.
        last: Last step that it lives in; the number of steps where it stays.
    """

    name: str
    values: tuple[str, ...]
    kind: str
    offset: int
    bytes: int
    first: int
    last: int


@dataclass(frozen=True)
class MemoryFacts(Memory):
    """Device memory at the tuned sizes, in bytes.

    Attributes:
        workspace_bytes: Scratch memory of kernels and libraries.
        blocks: Buffers by their first step, then by their place.
    """

    workspace_bytes: int
    blocks: tuple[BlockFacts, ...]


def memory_of(plan: Plan, order: Order) -> MemoryFacts:
    """Return where every buffer of a plan lies, and when."""
    placed = arena(plan, order, plan.free)
    pinned = [port.name for port in (*plan.inputs, *plan.outputs)]
    kinds = {  # of the steps that write to a buffer the first one decides
        plan.values[name].buffer: step.operator.problem.family.value
        for step in reversed(plan.steps)
        for name in step.operator.outputs
        if name in plan.values
    }
    blocks = [
        BlockFacts(
            name=name,
            values=tuple(value.name for value in plan.values.values() if value.buffer == name),
            kind=kinds.get(name, "input"),
            offset=placed.offsets[name],
            bytes=placed.sizes[name],
            first=first,
            last=last,
        )
        for name, (first, last) in lifetimes(plan.values, order.steps, pinned).items()
    ]
    return MemoryFacts(
        **vars(plan.memory),
        workspace_bytes=pieces(plan, order, plan.free, workspace_bytes).bytes,
        blocks=tuple(sorted(blocks, key=lambda block: (block.first, block.offset))),
    )
