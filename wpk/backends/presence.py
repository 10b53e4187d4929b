"""Is there a GPU to measure on? Asked of a process of its own, so that the caller holds no context."""

import importlib.util
from functools import cache

from wpk.backends.gpu_process import GpuProcess
from wpk.device import INSTALL_GPU_PACKAGES, GpuFacts
from wpk.errors import EngineError


@cache
def read_gpu() -> GpuFacts:
    """The first GPU of this machine, asked once.

    Raises:
        EngineError: There is none, or pycuda is not installed.
        LaunchError: It does not answer.
    """
    if importlib.util.find_spec("pycuda") is None:  # the same answer, without starting a process
        raise EngineError(
            "measuring on a GPU needs pycuda, which is not installed",
            fix=f"{INSTALL_GPU_PACKAGES}; or choose --search static",
        )
    with GpuProcess() as gpu:
        return gpu.facts
