"""Which problems TensorRT can be asked for, beside cuDNN: both are told of them by the same descriptions."""

from wpk.libraries import cudnn_problems
from wpk.libraries.cudnn_description import Description
from wpk.libraries.tensorrt_network import why_no_network
from wpk.problems import Problem

TENSORRT = "TensorRT"
"""What plans, stores and reports call the library."""


def why_not(problem: Problem) -> str | None:
    """Say why TensorRT cannot be asked for a problem, in words; None if it can.

    It may still build no engine for it: only the library on the GPU knows.
    """
    reason = cudnn_problems.why_not(problem)
    if reason is not None:
        return f"TensorRT is told of problems as cuDNN is, and not of this one: {reason}"
    return next(map(why_no_network, cudnn_problems.describe(problem)))


def describe(problem: Problem) -> tuple[Description, ...]:
    """The networks that compute a problem: orders of its epilogue, layouts of a constant.

    Raises:
        ValueError: `why_not` has a reason.
    """
    reason = why_not(problem)
    if reason is not None:
        raise ValueError(reason)
    return cudnn_problems.describe(problem)
