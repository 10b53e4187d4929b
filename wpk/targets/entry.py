"""Rows of the table of targets: what of a GPU follows from its compute capability is filled in here.

What the makers do not publish is said to be assumed, never passed off as read. Peaks are upper
limits (the bound divides by them): where a datasheet and a measurement differ, the larger stands
in the table, and `wpk.performance.estimate` knows what share of it is reached.
"""

from typing import Any

from wpk.dtypes import Precision
from wpk.targets.limits import LIMITS, SOURCE
from wpk.targets.target import Target

KIB = 1024
MIB = 1024 * KIB

VOLTA_PAPER = "Jia et al. 2018, arXiv 1804.06826, table 3.1"
TURING_PAPER = "Jia et al. 2019, arXiv 1903.07486 (measured on a T4, the same SM)"
HOPPER_PAPER = "Luo et al. 2024, arXiv 2402.13499, memory latency table"

_DATASHEET = (
    "description",
    "sm_count",
    "clock",
    "peak_ordinary",
    "peak_double",
    "global_bandwidth",
    "l2_bytes",
)
_SECTOR = (
    "32-byte sectors: smallest piece that L2 and global memory move (CUDA best practices guide)"
)
DEPENDENT_LAUNCH_SECONDS = 1.2e-6
"""Of a kernel in a chain of early-launched ones that reads and writes, measured on an H200."""

_UNMEASURED_STEP = "not measured; an H200's measured dependent step"
_WIDEST_L2 = 5120
_SM_BYTES = 64
_DOUBLE_CYCLE: dict[tuple[int, int], int] = {
    (6, 0): 32,
    (7, 0): 32,
    (7, 5): 2,
    (8, 0): 32,
    (8, 6): 2,
    (8, 9): 2,
    (9, 0): 64,
    (12, 0): 2,
}
"""Multiply-adds in fp64 that an SM's ordinary cores do in a cycle, by compute capability."""

_DOUBLE_SOURCE = (
    "multiply-adds a cycle and SM (CUDA C++ Programming Guide 12.9, throughput of native arithmetic "
    "instructions) at the boost clock"
)
ASSUMED_L2 = "width not published: 64 bytes a cycle for each SM assumed, at most A100's 5120, at the boost clock"


def gpu(arch: str, datasheet: str, sources: dict[str, str], **facts: Any) -> Target:
    """A target whose limits are those of its compute capability.

    Args:
        arch: What the compiler builds for, e.g. ``sm_86``.
        datasheet: Source of everything that ``sources`` does not name.
        sources: Where single numbers come from, by attribute.
        facts: The other attributes of `Target`. Without ``l2_bandwidth`` it is assumed; without
            ``peak_double`` it follows from the compute capability.
    """
    digits = arch.removeprefix("sm_").rstrip("af")
    capability = int(digits[:-1]), int(digits[-1])
    limits = LIMITS[capability]._asdict()
    named = dict.fromkeys(_DATASHEET, datasheet) | dict.fromkeys(limits, SOURCE)
    named |= {"capability": SOURCE, "peak_tensor": datasheet}
    named |= {"transaction_bytes": _SECTOR, "launch_seconds": _UNMEASURED_STEP}
    if "l2_bandwidth" not in facts:
        width = min(_WIDEST_L2, _SM_BYTES * facts["sm_count"])
        facts["l2_bandwidth"] = width * facts["clock"]
        named["l2_bandwidth"] = ASSUMED_L2
    if "peak_double" not in facts:
        each = _DOUBLE_CYCLE[capability]
        facts["peak_double"] = 2 * each * facts["sm_count"] * facts["clock"]
        named["peak_double"] = f"{each} {_DOUBLE_SOURCE}"
    return Target(
        arch=arch,
        capability=capability,
        transaction_bytes=32,
        launch_seconds=DEPENDENT_LAUNCH_SECONDS,
        sources=tuple(sorted((named | sources).items())),
        **limits,
        **facts,
    )


def peaks(
    *,
    fp16: float,
    bf16: float | None = None,
    tf32: float | None = None,
    int8: float | None = None,
    fp64: float | None = None,
) -> tuple[tuple[Precision, float], ...]:
    """Dense peaks of the tensor cores, sums in fp32 (of int8 in int32, of fp64 in fp64); None where they lack it."""
    given = (
        (Precision.TF32, tf32),
        (Precision.FP16, fp16),
        (Precision.BF16, bf16),
        (Precision.INT8, int8),
        (Precision.FP64, fp64),
    )
    return tuple((precision, peak) for precision, peak in given if peak is not None)
