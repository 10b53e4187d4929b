"""Steps that ONNX Runtime executes, compared with onnx's reference: no kernel is, but somebody must have looked."""

from collections.abc import Mapping

from wpk.checks.closer_look import CloserLook
from wpk.checks.float64_nodes import Array
from wpk.checks.model_check import check_outputs
from wpk.checks.operator_reference import HandedReference
from wpk.closed_models import read_closed_model
from wpk.dtypes import DType, Precision, from_numpy
from wpk.errors import EngineError, LaunchError
from wpk.plan import Check, Outcome, PlanBundle, Step
from wpk.runtime import RefusedInputsError, RuntimeProcess

NAME = "onnx's reference"

_NARROW = {DType.FP16: Precision.FP16, DType.BF16: Precision.BF16}


def execute_fallback(
    bundle: PlanBundle, step: Step, runtime: RuntimeProcess, memory: Mapping[str, Array]
) -> dict[str, Array]:
    """Return what ONNX Runtime gives for a step, by tensor, in the types that memory has.

    Args:
        bundle: The plan.
        step: One that ONNX Runtime executes.
        runtime: Executes it.
        memory: Tensors by name; those that the step gives say their types.

    Raises:
        EngineError: ONNX Runtime does not take the model.
        LaunchError: It cannot execute it.
    """
    if step.fallback is None:
        raise ValueError(f"{step.operator.name} is not executed by ONNX Runtime")
    model = read_closed_model(bundle.models[step.fallback.model])
    found = runtime.run(step.fallback.model, [memory[port.name] for port in model.inputs])
    return {
        port.name: array.astype(memory[port.name].dtype)
        for port, array in zip(model.outputs, found, strict=True)
    }


def check_fallback(
    bundle: PlanBundle,
    step: Step,
    runtime: RuntimeProcess,
    reference: HandedReference,
    memory: Mapping[str, Array],
) -> Check:
    """Compare a step with onnx's reference, in float64, on the reference's values.

    Args:
        bundle: The plan.
        step: One that ONNX Runtime executes.
        runtime: Executes it.
        reference: What it should give.
        memory: The reference's tensors as they lie in memory.
    """
    right = {name: memory[name] for name in reference.outputs}
    try:
        given = execute_fallback(bundle, step, runtime, memory)
    except RefusedInputsError as error:  # whether it may be so, the whole engine's comparison shows
        return Check(NAME, Outcome.INCONCLUSIVE, error.what)
    except (EngineError, LaunchError) as error:
        return Check(NAME, Outcome.FAILED, error.what)
    if reference.alone:
        operator, why = next(iter(reference.alone.items()))
        words = f"not checked independently: onnx's reference does not execute {operator}: {why}"
        return Check(NAME, Outcome.INCONCLUSIVE, words)
    types = [from_numpy(array.dtype) for array in right.values()]
    narrow = [_NARROW[dtype] for dtype in types if dtype in _NARROW]
    return check_outputs(
        lambda _: given,
        right,
        {},
        narrow[0] if narrow else Precision.FP32,
        NAME,
        closer=CloserLook(reference.model),
    )
