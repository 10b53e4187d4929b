"""Execute operators in turn, each on what those before it gave, and compare the engine's outputs with theirs.

Operators alone show that each computes what it should, not that an engine brings them together: that
a value is still there when it is read. Where a model amplifies rounding, ONNX Runtime's outputs show
neither. But an engine's kernels are those of its operators: executed one by one in memory of their
own they give the same, to the bit.
"""

from collections.abc import Mapping

import numpy as np

from wpk.checks.evaluation import EvaluationError
from wpk.checks.float64_nodes import Array
from wpk.checks.operator_check import StepRunner
from wpk.checks.operator_reference import GraphReference, Reference
from wpk.checks.scope import Sample
from wpk.engine import Engine, from_memory
from wpk.errors import LaunchError
from wpk.plan import Check, Outcome, PlanBundle, Step, library_images, tensors_of
from wpk.progress import Progress
from wpk.runtime import RefusedInputsError


def check_in_turn(
    bundle: PlanBundle,
    reference: GraphReference,
    engine: Engine,
    sample: Sample,
    dims: Mapping[str, int],
    progress: Progress,
) -> Check:
    """Compare an engine's outputs with those of its operators in turn.

    Args:
        bundle: The plan; no library computes a step on the engine's device.
        reference: The reference of the optimized graph: each operator is judged on the values that it is given.
        engine: The plan's engine.
        sample: The model's inputs.
        dims: Sizes of the free dimensions.
        progress: Told of every step.
    """
    name = f"operators in turn, {sample.name}"
    try:
        fault = _fault(bundle, reference, engine, sample, dims, progress)
    except (EvaluationError, RefusedInputsError) as error:
        return Check(name, Outcome.INCONCLUSIVE, error.what)
    except LaunchError as failure:
        fault = failure.what
    words = (
        "each is right on what those before it gave, and the engine's outputs are theirs to the bit"
    )
    outcome = Outcome.FAILED if fault else Outcome.OK
    return Check(name, outcome, fault or words)


def _fault(
    bundle: PlanBundle,
    reference: GraphReference,
    engine: Engine,
    sample: Sample,
    dims: Mapping[str, int],
    progress: Progress,
) -> str:
    """Execute the operators and the engine, and return what is wrong, if anything."""
    steps = {step.operator.call: step for step in bundle.plan.steps if step.operator.call}
    runner = StepRunner(tensors_of(bundle), dims, engine.device)
    memory: dict[str, Array] = {}
    results = (each for each in reference.run(sample.arrays, memory) if each.node in steps)
    for done, result in enumerate(results):
        progress("executing operators in turn", done, len(steps))
        step = steps[result.node]
        if step.fallback is not None:
            memory |= engine.host_steps.run(step, memory, dims)
            continue
        wrong = _advance(runner, step, memory, result)
        if wrong:
            return f"{step.operator.name}: {wrong}"
    progress("executing operators in turn", len(steps), len(steps))
    for output, array in engine.run(sample.arrays).items():
        if not np.array_equal(array, memory[output], equal_nan=True):
            return f"'{output}' of the engine is not what its operators give one after another"
    return ""


def executes_all(bundle: PlanBundle, engine: Engine) -> bool:
    """Whether the engine's device executes wpk's kernels alone: a library may add in any order."""
    return engine.device.executes_source or not any(library_images(bundle.plan))


def _advance(runner: StepRunner, step: Step, memory: dict[str, Array], result: Reference) -> str:
    """Execute a step, put its outputs in place of the reference's, and return what is wrong, if anything."""
    prepared = runner.prepare(step, memory, result)
    after, _ = runner.execute(step, prepared.images)
    found = prepared.compare(after)
    for name in step.operator.outputs:
        value = runner.tensors.values[name]
        given = from_memory(value, after[value.buffer][value.offset :], runner.dims)
        memory[name] = given.reshape(memory[name].shape)
    return "" if found.passed else f"{found.wrong} of {found.total} elements: {found.example}"
