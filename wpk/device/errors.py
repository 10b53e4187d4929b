"""What ends the process that executes candidates on a GPU."""

from wpk.errors import LaunchError


class GpuTimeoutError(LaunchError):
    """A kernel, or what was asked of the GPU, did not end within its time limit."""


class GpuLostError(LaunchError):
    """The process died, or its context is broken: nothing further can be executed in it."""


class TrampledError(LaunchError):
    """A kernel wrote where it had no right to."""
