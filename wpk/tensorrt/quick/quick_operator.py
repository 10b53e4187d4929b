"""From the plan of one operator to what a quick plugin holds."""

from dataclasses import dataclass

from wpk.build import load_nvrtc
from wpk.dims import DimExpr
from wpk.kernel_source import KernelSource
from wpk.launch import SizeArgument
from wpk.nvinfer import TensorRTError
from wpk.spec import OperatorSpec, operator_bytes, operator_id
from wpk.tensorrt.operators import Built, Packed, plugin_operator
from wpk.tensorrt.quick.fitness import why_not

NAMESPACE = "wpk"
_SHORT = 16


@dataclass(frozen=True)
class QuickOperator:
    """An operator as a quick plugin.

    Attributes:
        name: The plugin's, within `NAMESPACE`: of its own for every kernel, since TensorRT's timing cache tells such
            plugins apart by nothing else.
        spec: Inputs, outputs, formats and the launch; its machine code is not used.
        entry: Name of the kernel.
        ptx: The kernel, for TensorRT to assemble.
        numbers: What the kernel is given between inputs and outputs, as int32.
        weights: Packed constants, inputs behind the activations.
    """

    name: str
    spec: OperatorSpec
    entry: str
    ptx: bytes
    numbers: tuple[DimExpr, ...]
    weights: tuple[Packed, ...]


def quick_operator(name: str, linear: Built, built: Built | None = None) -> QuickOperator:
    """Put a quick plugin together.

    Args:
        name: Of the operator.
        linear: Its plan, of one step, in the linear format: it tells shapes as ONNX does.
        built: Its plan in the format that the plugin is for; ``linear`` by default.

    Raises:
        TensorRTError: It cannot be one; says why.
        CompileError: NVRTC is missing.
    """
    built = built or linear
    plan = built.bundle.plan
    outputs = tuple(port.dtype for port in plan.outputs)
    reasons = [reason for step in plan.steps if (reason := why_not(step, outputs))]
    if reasons:
        raise TensorRTError(
            f"operator '{name}' cannot be a quick plugin: {reasons[0]}",
            fix="let the plugin library execute it: docs/tensorrt.md",
        )
    whole = plugin_operator(name, [built], linear.bundle.plan)
    (step,) = plan.steps
    (launch,) = step.launches
    source = KernelSource(launch.entry, built.bundle.sources[launch.kernel])
    return QuickOperator(
        name=f"kernel_{operator_id(operator_bytes(whole.spec))[:_SHORT]}",
        spec=whole.spec,
        entry=launch.entry,
        ptx=load_nvrtc().ptx(source, plan.arch),
        numbers=tuple(
            each.expression for each in launch.arguments if isinstance(each, SizeArgument)
        ),
        weights=whole.weights,
    )
