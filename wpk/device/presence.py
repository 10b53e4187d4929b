"""Is there a GPU to measure on? Asked of a process of its own, so that the caller holds no context."""

import importlib.util
from dataclasses import dataclass
from functools import cache

from wpk.device.facts import DeviceFacts
from wpk.device.process import GpuProcess
from wpk.errors import EngineError


@dataclass(frozen=True)
class GpuFacts:
    """A GPU of this machine.

    Attributes:
        name: As the driver says it, with its architecture.
        capability: Major and minor compute capability.
        driver: Its driver's own version.
        l2_bytes: Size of its L2 cache.
        facts: All numbers that were read off it.
        cuda_api: Version of CUDA that its driver supports.
    """

    name: str
    capability: tuple[int, int]
    driver: str
    l2_bytes: int
    facts: DeviceFacts | None = None
    cuda_api: str = ""


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
            fix="pip install 'wpk[gpu]' (it needs the CUDA toolkit), or choose --search static",
        )
    with GpuProcess() as gpu:
        return GpuFacts(gpu.name, gpu.capability, gpu.driver, gpu.l2_bytes, gpu.facts, gpu.cuda_api)
