"""A plan bound to sizes and addresses: where every value lies, and what every launch is given."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from wpk.dims import evaluate
from wpk.execution import (
    BoundArgument,
    BoundCall,
    BoundLaunch,
    LibraryImage,
    Pointer,
    TensorMap,
    Work,
)
from wpk.launch import (
    Argument,
    CounterArgument,
    InputArgument,
    Launch,
    OutputArgument,
    SizeArgument,
    TensorMapArgument,
    WorkspaceArgument,
)
from wpk.plan.memory import Layout, MemoryPlan, aligned, lay_out, plan_memory
from wpk.plan.order import Order
from wpk.plan.plan import Plan, Step
from wpk.plan.tensors import Tensors

_COUNTER_BYTES = 4


@dataclass(frozen=True)
class StepAddresses:
    """Where a step's operands lie, and the element size of its inputs.

    Attributes:
        inputs: Address of each input.
        element_bytes: Of each input.
        outputs: Address of each output.
        workspace: Address of scratch memory (`workspace_bytes`).
        counters: Address of memory that is zero (`counter_bytes`).
    """

    inputs: tuple[int, ...]
    element_bytes: tuple[int, ...]
    outputs: tuple[int, ...]
    workspace: int
    counters: int


def library_images(plan: Plan) -> Iterator[LibraryImage]:
    """What libraries must make ready for a plan."""
    return (step.image for step in plan.steps if step.image is not None)


def order_of(plan: Plan) -> Order:
    """Which steps of a plan must follow which."""
    return Order(plan.values, [step.operator for step in plan.steps])


def arena(plan: Plan, order: Order, dims: Mapping[str, int]) -> MemoryPlan:
    """Where buffers lie for an assignment of the free dimensions."""
    pinned = [port.name for port in (*plan.inputs, *plan.outputs)]
    return plan_memory(plan.buffers, plan.values, order, pinned, dims)


def pieces(
    plan: Plan,
    order: Order,
    dims: Mapping[str, int],
    asked: Callable[[Step, Mapping[str, int]], int],
) -> Layout[int]:
    """Memory of which each step, by its number, has a piece that no step uses that may run at the same time.

    Args:
        plan: Whose steps.
        order: Of its steps.
        dims: Values of the free dimensions.
        asked: What a step asks for: `workspace_bytes` or `counter_bytes`.
    """
    sizes = {number: aligned(asked(step, dims)) for number, step in enumerate(plan.steps)}
    return lay_out(sizes, order.ordered)


def element_bytes(tensors: Tensors | Plan, step: Step) -> tuple[int, ...]:
    """Element sizes of a step's inputs."""
    sources = (tensors.weights.get(name) or tensors.values.get(name) for name in step.inputs)
    return tuple(source.dtype.bytes for source in sources if source is not None)


def workspace_bytes(step: Step, dims: Mapping[str, int]) -> int:
    """Bytes of scratch memory that a step asks for: the most of its launches, or a library's."""
    asked = (a for launch in step.launches for a in launch.arguments)
    sizes = (evaluate(a.bytes, dims) for a in asked if isinstance(a, WorkspaceArgument))
    return max(step.workspace_bytes, *sizes, 0)


def counter_bytes(step: Step, dims: Mapping[str, int]) -> int:
    """Bytes of counters that a step's launches find zero and leave zero: the most of them."""
    asked = (a for launch in step.launches for a in launch.arguments)
    counts = (evaluate(a.count, dims) for a in asked if isinstance(a, CounterArgument))
    return max(counts, default=0) * _COUNTER_BYTES


def bind_step(step: Step, addresses: StepAddresses, dims: Mapping[str, int]) -> tuple[Work, ...]:
    """The launches of a step, or its call of a library, with everything evaluated; none where ONNX Runtime executes it."""
    if step.image is not None:
        pointers = (*addresses.inputs, *addresses.outputs)
        workspace = (addresses.workspace, step.workspace_bytes)
        return (BoundCall(step.image.digest, pointers, *workspace),)
    return tuple(bind_launch(launch, addresses, dims) for launch in step.launches)


def bind_launch(launch: Launch, addresses: StepAddresses, dims: Mapping[str, int]) -> BoundLaunch:
    """One launch with everything evaluated."""
    x, y, z = (evaluate(size, dims) for size in launch.grid)
    return BoundLaunch(
        launch.kernel,
        launch.entry,
        (x, y, z),
        launch.block,
        launch.cluster,
        launch.shared_bytes,
        tuple(_argument(argument, addresses, dims) for argument in launch.arguments),
        launch.attributes,
    )


def bind_map(
    argument: TensorMapArgument, address: int, element_bytes: int, dims: Mapping[str, int]
) -> TensorMap:
    """A tensor map over the tensor at an address, with everything evaluated."""
    return TensorMap(
        address,
        element_bytes,
        tuple(evaluate(size, dims) for size in argument.shape),
        tuple(evaluate(size, dims) for size in argument.strides),
        argument.box,
        argument.swizzle,
        argument.im2col,
        argument.to_tf32,
    )


def _argument(
    argument: Argument, addresses: StepAddresses, dims: Mapping[str, int]
) -> BoundArgument:
    match argument:
        case InputArgument(index):
            return Pointer(addresses.inputs[index])
        case SizeArgument(expression):
            return evaluate(expression, dims)
        case TensorMapArgument():
            address = addresses.inputs[argument.index]
            return bind_map(argument, address, addresses.element_bytes[argument.index], dims)
        case OutputArgument(index):
            return Pointer(addresses.outputs[index])
        case WorkspaceArgument():
            return Pointer(addresses.workspace)
        case CounterArgument():
            return Pointer(addresses.counters)
