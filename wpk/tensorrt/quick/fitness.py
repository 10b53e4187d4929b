"""Which steps of a plan can be quick plugins.

TensorRT launches one kernel: pointers of the inputs, then int32 numbers, then pointers of the outputs, which is the order
of every `wpk.launch.Launch`; grid, block and shared memory are expressions over shapes. There is no workspace, no memory of the plugin's own, no tensor map and no
launch attribute. A kernel that may begin early is launched without that: it then finds nothing to wait for.
"""

from wpk.candidate import Kind
from wpk.dtypes import DType
from wpk.launch import (
    CounterArgument,
    InputArgument,
    Launch,
    OutputArgument,
    TensorMapArgument,
    WorkspaceArgument,
)
from wpk.plan import Step

SHARED_BYTES = 48 << 10
"""What a kernel may use without asking CUDA for more, which nothing says that TensorRT does."""

_BESIDE = {
    TensorMapArgument: "it reads through tensor maps",
    WorkspaceArgument: "it needs scratch memory",
    CounterArgument: "it needs counters that stay zero between launches",
}
_NO_OUTPUT = (DType.BOOL, DType.UINT8)


def why_not(step: Step, outputs: tuple[DType, ...]) -> str:
    """Why a step cannot be a quick plugin, in words; empty where it can.

    Args:
        step: Of a plan.
        outputs: Element types of what it computes.
    """
    if step.candidate.maker.kind is Kind.LIBRARY:
        return f"{step.candidate.maker.name} computes it"
    if len(step.launches) != 1:
        return f"it is {len(step.launches)} kernels"
    (launch,) = step.launches
    wrong = next((dtype for dtype in outputs if dtype in _NO_OUTPUT), None)
    if wrong is not None:
        return f"plugins of TensorRT give no {wrong}"
    return _why_no_launch(launch)


def _why_no_launch(launch: Launch) -> str:
    for argument in launch.arguments:
        if type(argument) in _BESIDE:
            return _BESIDE[type(argument)]
    if launch.cluster != (1, 1, 1):
        return "its blocks are launched in clusters"
    if launch.shared_bytes > SHARED_BYTES:
        return f"it uses more than {SHARED_BYTES >> 10} KiB of shared memory"
    for kind in (InputArgument, OutputArgument):
        numbers = [each.index for each in launch.arguments if isinstance(each, kind)]
        if numbers != list(range(len(numbers))):
            return "it does not take its inputs and outputs once each, in their order"
    return ""
