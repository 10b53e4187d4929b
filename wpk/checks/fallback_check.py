"""Steps that the host executes or drives, compared with onnx's reference: somebody must have looked."""

from collections.abc import Mapping

from wpk.checks.closer_look import CloserLook
from wpk.checks.float64_nodes import Array
from wpk.checks.model_check import check_outputs
from wpk.checks.operator_reference import HandedReference
from wpk.dtypes import DType, Precision, from_numpy
from wpk.engine import HostSteps
from wpk.errors import EngineError, LaunchError
from wpk.plan import Check, Outcome, Step
from wpk.runtime import RefusedInputsError

NAME = "onnx's reference"

_NARROW = {DType.FP16: Precision.FP16, DType.BF16: Precision.BF16}


def check_fallback(
    step: Step,
    hosts: HostSteps,
    reference: HandedReference,
    memory: Mapping[str, Array],
    dims: Mapping[str, int],
    precision: Precision,
) -> Check:
    """Compare a step with onnx's reference, in float64, on the reference's values.

    Args:
        step: One that ONNX Runtime executes, or whose bodies the host drives.
        hosts: Executes it.
        reference: What it should give.
        memory: The reference's tensors as they lie in memory.
        dims: Values of the free dimensions.
        precision: What multiplications of engines may use.
    """
    right = {name: memory[name] for name in reference.outputs}
    try:
        given = hosts.run(step, memory, dims)
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
        precision if step.bodies else narrow[0] if narrow else Precision.FP32,
        NAME,
        closer=CloserLook(reference.model),
    )
