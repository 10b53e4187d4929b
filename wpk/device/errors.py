"""What goes wrong while a GPU executes."""

from wpk.errors import LaunchError


class GpuTimeoutError(LaunchError):
    """A kernel, or what was asked of the GPU, did not end within its time limit."""


class GpuLostError(LaunchError):
    """The process died, or its context is broken: nothing further can be executed in it."""


class TrampledError(LaunchError):
    """A kernel wrote where it had no right to."""


def kernel_failure(name: str, error: Exception) -> LaunchError:
    """What a driver's error says of the kernels that were started on a GPU.

    Args:
        name: Of the GPU.
        error: The driver's, from a call that waits for them.
    """
    return LaunchError(
        f"a kernel failed on {name}: {error}",
        fix="run the plan with --device cpu, which says which kernel and where",
    )
