"""Check a plan against the model it was made from: the whole engine, and every operator alone."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from wpk.checks.float64_nodes import Array
from wpk.checks.model_check import (
    ModelReference,
    OutputError,
    check_outputs,
    import_onnxruntime,
    output_error,
)
from wpk.checks.operator_check import OperatorCheck, check_operators
from wpk.checks.operator_reference import GraphReference
from wpk.engine.engine import Engine
from wpk.engine.inputs import random_inputs
from wpk.errors import VerificationError
from wpk.execution import Device
from wpk.lowering.model import LoweredModel
from wpk.lowering.program import Program
from wpk.plans.plan import Check, Plan, PlanBundle

Progress = Callable[[str, int, int], None]
Arrays = Mapping[str, Array]

SEEDS = 3
"""Random inputs that a whole engine is compared on."""

FREE_SIZES = (1, 3)
"""Sizes that a free dimension is checked at: the tuned one, and one that tiles do not divide."""


@dataclass(frozen=True)
class Verification:
    """The outcome of all checks.

    Attributes:
        operators: Every operator alone, at every size checked.
        whole: The whole engine, a check for each seed and size.
    """

    operators: tuple[OperatorCheck, ...]
    whole: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        """Whether all checks passed."""
        return all(c.passed for c in self.whole) and all(o.check.passed for o in self.operators)

    def of(self, operator: str) -> tuple[Check, ...]:
        """The checks of one operator."""
        return tuple(each.check for each in self.operators if each.name == operator)

    def failures(self) -> list[str]:
        """What failed, in words."""
        alone = [f"{o.name}: {o.check.detail}" for o in self.operators if not o.check.passed]
        return alone + [f"{c.name}: {c.detail}" for c in self.whole if not c.passed]


def checked(
    bundle: PlanBundle, lowered: LoweredModel, model: Path, device: Device, progress: Progress
) -> PlanBundle:
    """The plan with the evidence of its checks, executed on a device.

    Raises:
        VerificationError: A check failed.
    """
    outcome = verify(bundle, lowered, model, device, SEEDS, progress)
    require_passed(outcome)
    steps = tuple(
        replace(step, evidence=replace(step.evidence, checks=outcome.of(step.operator.name)))
        for step in bundle.plan.steps
    )
    plan = replace(bundle.plan, steps=steps, checks=outcome.whole, checked_on=device.name)
    return replace(bundle, plan=plan)


def require_passed(outcome: Verification) -> None:
    """Raise if a check failed.

    Raises:
        VerificationError: Naming the first failures.
    """
    failures = outcome.failures()
    if failures:
        more = f" (and {len(failures) - 3} more)" if len(failures) > 3 else ""
        raise VerificationError(
            f"the numbers disagree: {' | '.join(failures[:3])}{more}",
            fix="verify against the model that the plan was made from; if it is, this is a bug",
        )


def verify(
    bundle: PlanBundle,
    lowered: LoweredModel,
    model: Path,
    device: Device,
    seeds: int,
    progress: Progress,
) -> Verification:
    """Execute a plan's kernels and compare with the model.

    Args:
        bundle: The plan.
        lowered: The model after passes and lowering with the plan's options.
        model: The model's file.
        device: Executes the kernels.
        seeds: Random inputs for the whole engine at the tuned sizes, at least 1, where operators
            alone are checked on the first; at other sizes of a free dimension one is enough.
        progress: Told of every step.

    Raises:
        VerificationError: The plan's operators are not the model's.
        EngineError: ONNX Runtime is missing, or cannot execute the model.
    """
    plan = bundle.plan
    require_same_operators(plan, lowered.program)
    operators: list[OperatorCheck] = []
    whole: list[Check] = []
    import_onnxruntime()  # not in the thread: an interrupted import would leave it waiting for ever
    with ThreadPoolExecutor(1, "wpk-reference") as beside:  # computes while operators are checked
        loading = beside.submit(ModelReference, model)
        alone = GraphReference(lowered.graph, plan.precision)
        with Engine(bundle, device) as engine:
            reference = loading.result()
            for dims in _sizes(plan):
                at = "".join(f", {name} {size}" for name, size in dims.items())
                count = seeds if dims == plan.free else 1
                inputs = [random_inputs(plan, seed, dims) for seed in range(count)]
                expected: list[Future[Arrays]] = [beside.submit(reference, each) for each in inputs]
                memory: dict[str, Array] = {}
                operators += check_operators(
                    bundle, alone, inputs[0], dims, device, memory, progress
                )
                first = expected[0].result()
                rounded = {
                    port.name: output_error(memory[port.name], first[port.name])
                    for port in plan.outputs
                }
                whole += _compared(engine, inputs, expected, rounded, at, progress)
    return Verification(tuple(operators), tuple(whole))


def _compared(
    engine: Engine,
    inputs: Sequence[Arrays],
    expected: Sequence[Future[Arrays]],
    rounded: Mapping[str, OutputError],
    at: str,
    progress: Progress,
) -> Iterator[Check]:
    """The whole engine beside ONNX Runtime, a seed after the other."""
    for seed, (given, right) in enumerate(zip(inputs, expected, strict=True)):
        progress(f"comparing with ONNX Runtime{at}", seed, len(inputs))
        name, precision = f"ONNX Runtime, seed {seed}{at}", engine.plan.precision
        yield check_outputs(engine.run, right.result(), given, precision, name, rounded)
    progress(f"comparing with ONNX Runtime{at}", len(inputs), len(inputs))


def require_same_operators(plan: Plan, program: Program) -> None:
    """Compare the plan's operators with those that the model lowers to.

    Raises:
        VerificationError: They differ; names the first one.
    """
    ours = [(step.operator.name, step.operator) for step in plan.steps]
    theirs = [(operator.name, operator) for operator in program.operators]
    for (name, mine), (other, its) in zip(ours, theirs, strict=False):
        if mine != its:
            what = "another problem" if name == other else f"operator '{other}' there"
            raise _other_model(f"operator '{name}' of the plan has {what} in the model")
    if len(ours) != len(theirs):
        raise _other_model(f"it has {len(ours)} operators, the model has {len(theirs)}")


def _other_model(what: str) -> VerificationError:
    return VerificationError(
        f"the plan was not made from this model: {what}",
        fix="give the model that the plan was made from, or optimize this one",
    )


def _sizes(plan: Plan) -> Iterable[Mapping[str, int]]:
    if not plan.free:
        return [{}]
    sizes = dict.fromkeys((*plan.free.values(), *FREE_SIZES))
    return [dict.fromkeys(plan.free, size) for size in sizes]
