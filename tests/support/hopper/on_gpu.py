"""Examples of sm_90 on a GPU, in a process of their own: a kernel that fails takes the process's context along."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context

from support.faults.planter import Edit, whole
from support.hopper.catalogue import examples
from support.hopper.example import Array, run
from wpk.build import load_nvrtc
from wpk.device import CudaDevice
from wpk.errors import WpkError
from wpk.execution import KernelImage


class OtherProcess:
    """Executes examples one after the other; behind one that failed in a new process."""

    def __init__(self) -> None:
        """Start nothing yet."""
        self._pool: ProcessPoolExecutor | None = None

    def run(self, name: str, edit: Edit = whole, times: int = 1) -> list[Array]:
        """What each of ``times`` launches of an example writes.

        Raises:
            RuntimeError: A launch failed.
        """
        if self._pool is None:
            self._pool = ProcessPoolExecutor(1, mp_context=get_context("spawn"))
        outcome = self._pool.submit(_run, name, edit, times).result()
        if isinstance(outcome, str):
            self.close()
            raise RuntimeError(outcome)
        return outcome

    def close(self) -> None:
        """End the process."""
        if self._pool is not None:
            self._pool.shutdown()
        self._pool = None


@cache
def _device() -> CudaDevice:
    return CudaDevice()


def _run(name: str, edit: Edit, times: int) -> list[Array] | str:
    """Results, or the words of an error; by name, since examples hold functions."""
    (example,) = (each for each in examples() if each.name == name)
    source = example.source(edit)
    cubin = load_nvrtc().compile(source, "sm_90a").cubin
    image = KernelImage(source.digest, source, cubin)
    try:
        return [run(example, _device(), image) for _ in range(times)]
    except WpkError as error:
        return str(error)
