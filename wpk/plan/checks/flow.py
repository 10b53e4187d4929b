"""Whether every byte that a plan's steps read, and its outputs, was written before, and once.

So a value stays what it was from the step that writes it to the last one that reads it. Different
buffers never meet in memory while both are in use: where they lie is not for the plan to say, the engine
lays them out itself, from the order that this shows to be right (`wpk.plan.memory`).
"""

from collections.abc import Collection, Iterator, Mapping, Sequence

from wpk.plan.checks.operands import StepTouches, Touch
from wpk.plan.checks.sized_plan import SizedPlan
from wpk.plan.checks.values import is_empty
from wpk.plan.fields import wrong
from wpk.plan.ports import Port
from wpk.plan.regions import Parts, Region


def check_flow(sized: SizedPlan, steps: Sequence[StepTouches]) -> None:
    """Follow the steps, by what each touches, in their order.

    Raises:
        PlanError: A step reads, or an output is, what was not written; or a step writes what was
            written before.
    """
    wholes: dict[str, list[Region]] = {}
    for name, value in sized.plan.values.items():
        wholes.setdefault(value.buffer, []).append(sized.regions[name])
    written = {buffer: Parts(each) for buffer, each in wholes.items()}
    for port in _ports(sized, sized.plan.inputs, "plan.inputs"):
        _write(written, port)
    kept: set[str] = set()
    for number, step in enumerate(steps):
        for read in step.reads:
            _require(written, read)
        for write in step.writes:
            _write(written, write)
        _require_kept(kept, step.takes, f"plan.steps[{number}].inputs")
        if not kept.isdisjoint(step.keeps) or len(set(step.keeps)) < len(step.keeps):
            raise wrong(f"plan.steps[{number}].operator.outputs", f"{step.keeps} were kept before")
        kept.update(step.keeps)
    _require_kept(kept, [each.name for each in sized.plan.kept_outputs], "plan.kept_outputs")
    for port in _ports(sized, sized.plan.outputs, "plan.outputs"):
        _require(written, port)


def _ports(sized: SizedPlan, ports: Sequence[Port], path: str) -> Iterator[Touch]:
    """What a caller writes or reads: nothing where a port has no elements."""
    for index, port in enumerate(ports):
        value = sized.plan.values[port.name]
        if not is_empty(value):
            yield Touch(f"{path}[{index}]", port.name, value.buffer, sized.regions[port.name])


def _require_kept(kept: Collection[str], names: Sequence[str], path: str) -> None:
    for name in names:
        if name not in kept:
            raise wrong(path, f"'{name}' is used before it was kept")


def _write(written: Mapping[str, Parts], touch: Touch) -> None:
    if not written[touch.buffer].add(touch.region):
        raise wrong(touch.path, f"'{touch.name}' would overwrite what was written before")


def _require(written: Mapping[str, Parts], touch: Touch) -> None:
    if not written[touch.buffer].cover(touch.region):
        raise wrong(touch.path, f"'{touch.name}' is used before all of it was written")
