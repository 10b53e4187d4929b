"""Trace the model's nodes to the plan's operators, and each operator to those whose outputs it reads."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from wpk.plan import Plan
from wpk.report.plans.words import kind_of_onnx

_FOLDED = "BatchNormalization"
_PRODUCTS = {"Conv", "ConvTranspose", "Gemm", "MatMul"}
"""A normalisation behind one of these goes into its weights, whoever reads the result."""


@dataclass(frozen=True)
class NodeFacts:
    """A node of the model.

    Attributes:
        name: Its name.
        operator: ONNX operator.
        kind: Its family.
        operators: Numbers of the operators that compute it; empty where the passes removed it.
        near: For a removed node, number of the operator that its work most likely went to: one
            that the passes made at its place, else the first that reads what it led to; -1 where
            nothing reads it.
    """

    name: str
    operator: str
    kind: str
    operators: tuple[int, ...]
    near: int


def trace_nodes(plan: Plan) -> tuple[NodeFacts, ...]:
    """Return every node of the model with the operators that compute it.

    A node belongs to the operators that name it, else to the operator that computes its output
    under another name. The passes removed all others: folded into weights, cancelled, replaced.
    """
    owners = _owners(plan)
    near = _near(plan, owners)
    return tuple(
        NodeFacts(
            node.name,
            node.operator,
            kind_of_onnx(node.operator),
            owners.get(node.name, ()),
            near.get(node.name, -1),
        )
        for node in plan.provenance.before
    )


def _near(plan: Plan, owners: Mapping[str, tuple[int, ...]]) -> Mapping[str, int]:
    """Return for each removed node the operator to which its work most likely went.

    The model's nodes are in topological order, so one walk finds what a node comes from, and one
    walk back what it leads to.
    """
    before = plan.provenance.before
    known = {number for node in before for number in owners.get(node.name, ())}
    own = [number for number in range(len(plan.steps)) if number not in known]
    after = _walk([(n.name, n.inputs, n.outputs) for n in before], owners, max, -1)
    back = [(n.name, n.outputs, n.inputs) for n in reversed(before)]
    until = _walk(back, owners, min, len(plan.steps))
    near = {}
    makers = {tensor: node.operator for node in before for tensor in node.outputs}
    for node in before:
        folded = node.operator == _FOLDED and makers.get(next(iter(node.inputs), "")) in _PRODUCTS
        if node.name not in owners and folded and after[node.name] >= 0:
            near[node.name] = after[node.name]
        elif node.name not in owners and until[node.name] < len(plan.steps):
            reader = until[node.name]
            made = (number for number in own if after[node.name] < number < reader)
            near[node.name] = next(made, reader)
    return near


def _walk(
    nodes: Iterable[tuple[str, tuple[str, ...], tuple[str, ...]]],
    owners: Mapping[str, tuple[int, ...]],
    pick: Callable[[Iterable[int]], int],
    nothing: int,
) -> dict[str, int]:
    """The operator picked for each node (name, tensors from before, tensors for later ones).

    It is the node's own operator, or what was picked for the nodes walked before.
    """
    at: dict[str, int] = {}
    found: dict[str, int] = {}
    for name, earlier, later in nodes:
        known = owners.get(name) or tuple(at[tensor] for tensor in earlier if tensor in at)
        found[name] = pick(known) if known else nothing
        for tensor in later if known else ():
            at[tensor] = pick((found[name], at.get(tensor, found[name])))
    return found


def _owners(plan: Plan) -> Mapping[str, tuple[int, ...]]:
    """Numbers of the operators that compute each of the model's nodes."""
    owners: dict[str, list[int]] = {}
    for number, step in enumerate(plan.steps):
        for name in dict.fromkeys(step.operator.nodes):
            owners.setdefault(name, []).append(number)
    calls = {step.operator.call: n for n, step in enumerate(plan.steps) if step.operator.call}
    made = {
        tensor: calls[node.name]
        for node in plan.provenance.after
        if node.name in calls
        for tensor in node.outputs
    }
    for node in plan.provenance.before:
        makers = [made[tensor] for tensor in node.outputs if tensor in made]
        if node.name not in owners and makers:
            owners[node.name] = makers[:1]
    return {name: tuple(numbers) for name, numbers in owners.items()}


def producers_of(plan: Plan) -> tuple[tuple[int, ...], ...]:
    """Return for each step the numbers of the steps that wrote what it reads.

    A value that no step writes by name is a view: whoever wrote to its buffer before made it.
    """
    by_value: dict[str, int] = {}
    by_buffer: dict[str, list[int]] = {}
    producers = []
    for number, step in enumerate(plan.steps):
        found: set[int] = set()
        for name in step.inputs:
            if name in by_value:
                found.add(by_value[name])
            elif name in plan.values:
                found.update(by_buffer.get(plan.values[name].buffer, ()))
        producers.append(tuple(sorted(found)))
        for name in step.operator.outputs:
            by_value[name] = number
            if name in plan.values:
                by_buffer.setdefault(plan.values[name].buffer, []).append(number)
    return tuple(producers)
