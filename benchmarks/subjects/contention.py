"""Kernels that issue instructions beside products of warpgroups (contention.cu), and their cycles on a GPU of sm_90a."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from wpk.build import load_nvrtc
from wpk.device import CudaDevice
from wpk.execution import BoundLaunch, KernelImage, Pointer
from wpk.kernel_source import KernelSource

TEXT = Path(__file__).with_suffix(".cu").read_text(encoding="utf-8")

INSTRUCTIONS = ("multiply_add", "minimum", "power_of_two", "gelu")
"""What is issued: of the pipe of multiply-adds, of the one of comparisons, of the special functions, and all that a GELU is."""

WIDTHS = (64, 192)
"""Columns of the products of 64 rows and 16 terms."""

A_ROUND = 64
"""Instructions of a round."""

GROUP_WARPS, SCHEDULERS = 4, 4
_TILE_BYTES, _MOST_WARPS = 32768, 16
_FEW, _MANY = 200, 20_000
"""Rounds, or groups of four products, that are timed, and those that outlast them."""


@dataclass(frozen=True)
class Cycles:
    """Cycles of a scheduler for an instruction, and of an SM for a product, of several warpgroups together.

    Attributes:
        instruction: None where no warp issues any.
        product: None where no warpgroup multiplies.
    """

    instruction: float | None
    product: float | None


def source(instruction: str, width: int) -> KernelSource:
    """One of the kernels."""
    return KernelSource(f"{instruction}_{width}", TEXT)


class Contention:
    """The kernels in a device's memory."""

    def __init__(self, device: CudaDevice) -> None:
        """Allocate; kernels are compiled when they are measured first."""
        self._device, self._compiler = device, load_nvrtc()
        blocks = device.facts.sm_count
        self._x, self._unused = device.allocate(4 * 256), device.allocate(256)
        device.write(self._x, np.linspace(0.5, 1.0, 256).astype(np.float32))
        self._cycles = np.zeros((blocks, _MOST_WARPS), np.int32)
        self._at = device.allocate(self._cycles.nbytes)

    def measure(self, instruction: str, width: int, warps: int, groups: int) -> Cycles:
        """Time so many warps of each scheduler that issue an instruction, and so many warpgroups that multiply.

        What is timed ends long before what goes on beside it.
        """
        kernel = source(instruction, width)
        cubin = self._compiler.compile(kernel, "sm_90a").cubin
        self._device.load(KernelImage(kernel.digest, kernel, cubin))
        issued = multiplied = None
        if warps:
            issued = self._run(kernel, warps, groups, _MANY, _FEW)[1] / (_FEW * A_ROUND * warps)
        if groups:
            multiplied = self._run(kernel, warps, groups, _FEW, _MANY)[0] / (4 * _FEW * groups)
        return Cycles(issued, multiplied)

    def _run(
        self, kernel: KernelSource, warps: int, groups: int, fours: int, rounds: int
    ) -> tuple[float, float]:
        """The cycles of the slowest warp that multiplies, and of the slowest that issues; medians of all SMs, at the second start."""
        count = GROUP_WARPS * groups + SCHEDULERS * warps
        arguments = (
            Pointer(self._x),
            groups,
            4 * fours,
            rounds,
            Pointer(self._unused),
            Pointer(self._at),
        )
        grid, block = (len(self._cycles), 1, 1), (32 * count, 1, 1)
        launch = BoundLaunch(
            kernel.digest, kernel.entry, grid, block, (1, 1, 1), _TILE_BYTES, arguments, ()
        )
        for _ in range(2):
            self._device.launch(launch)
        flat = self._device.read(self._at, self._cycles.nbytes).view(np.int32)
        cycles = flat[: len(self._cycles) * count].reshape(-1, count)
        parts = cycles[:, : GROUP_WARPS * groups], cycles[:, GROUP_WARPS * groups :]
        first, second = (float(np.median(part.max(1))) if part.size else 0.0 for part in parts)
        return first, second
