"""wpk's pipeline with what is slow to start kept from case to case: compilers and the emulator.

Only these change: processes that compile are those of one pool for each architecture, kernels run in one emulator (in a
process of its own as always), and fewer schedules of each problem may be compiled.
"""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from unittest.mock import patch

import pytest

import wpk.engine.engine
import wpk.search.models.model_search as model_search
from support.plans.quick_search import WAYS, OneForAll
from wpk.build import CompilePool, KernelCache
from wpk.emulator import GUARDED, EmulatorProcess
from wpk.execution import Device
from wpk.libraries import NumpyLibraries
from wpk.runtime import RuntimeProcess

LAUNCH_SECONDS = 60.0
CASES_A_DEVICE = 60
"""An emulator keeps what it loaded: it is made new now and then."""


class Warm:
    """What is kept; use as a context manager."""

    def __init__(self, finalists: int, *, cubins: bool = True) -> None:
        """Nothing is started yet.

        Args:
            finalists: Schedules of a problem that are compiled.
            cubins: Whether every kernel is compiled for the GPU. Else the first one's machine code
                stands for all: nothing that a CPU executes depends on it.
        """
        self._finalists = finalists
        self._cubins = cubins
        self._pools: dict[str, CompilePool] = {}
        self._device: EmulatorProcess | None = None
        self._used = 0
        self._models: dict[str, bytes] = {}
        self._runtime = RuntimeProcess(self._models)

    def __enter__(self) -> "Warm":
        """Change the pipeline."""
        self._patches = [
            *(patch(f"wpk.pipeline.{way}.CompilePool", self._compile_pool) for way in WAYS),
            patch("wpk.pipeline.making.open_device", lambda _: nullcontext(self.device())),
            patch("wpk.pipeline.from_lock.open_device", lambda _: nullcontext(self.device())),
            patch.object(model_search, "FINALISTS", self._finalists),
            patch.object(wpk.engine.engine, "RuntimeProcess", self._lent_runtime),
        ]
        for each in self._patches:
            each.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Put it back, and end every process."""
        for each in self._patches:
            each.stop()
        self.drop_device()
        self._runtime.close()
        for pool in self._pools.values():
            pool.close()

    def _lent_runtime(self, models: Mapping[str, bytes]) -> "_LentRuntime":
        self._models |= models
        return _LentRuntime(self._runtime)

    def device(self) -> Device:
        """The emulator, in a process."""
        self._used += 1
        if self._device is not None and self._used > CASES_A_DEVICE:
            self.drop_device()
        if self._device is None:
            self._used = 0
            self._device = EmulatorProcess(
                GUARDED, libraries=NumpyLibraries(), time_limit_seconds=LAUNCH_SECONDS
            )
        return self._device

    def drop_device(self) -> None:
        """End the emulator: it is of no use after a kernel hung or crashed, or memory was left."""
        if self._device is not None:
            self._device.close()
            self._device = None

    def _compile_pool(
        self, arch: str, *, cache: KernelCache
    ) -> AbstractContextManager[CompilePool]:
        if arch not in self._pools:
            kind = CompilePool if self._cubins else OneForAll
            self._pools[arch] = kind(arch, cache=cache, workers=1)
        return nullcontext(self._pools[arch])


@pytest.fixture(name="warm", scope="module")
def fixture_warm() -> Iterator[Warm]:
    """As few kernels compiled as can be: for tests that ask for right numbers, of whatever schedule."""
    with Warm(finalists=1) as warm:
        yield warm


@pytest.fixture(name="warm_without_cubins", scope="module")
def fixture_warm_without_cubins() -> Iterator[Warm]:
    """`warm`, for tests that are not the first to compile their templates: only the CPU has its kernels."""
    with Warm(finalists=1, cubins=False) as warm:
        yield warm


class _LentRuntime:
    """A process of ONNX Runtime that goes on when an engine is closed."""

    def __init__(self, runtime: RuntimeProcess) -> None:
        self.run = runtime.run

    def close(self) -> None:
        """Nothing: others use it."""
