"""The bound: the roofline time of a problem that nothing can beat.

    max( bytes / BW_L2,  max(0, bytes - size_L2) / BW_global,
         products / peak of the fastest unit that the precision may use,  others / PERF_peak )

PERF_peak is that of the ordinary cores in the numbers that a problem is computed in: fp64 has its own.

Bytes are those of distinct elements. What fits L2 may already be there, and written bytes may stay
there, so only the rest must cross global memory. Strict fp32 may split each operand into two tf32
numbers and take three products (3xtf32), so its fastest unit is the faster of the ordinary cores
and a third of tf32's. Operations are the direct algorithm's, those with padding left out. Winograd's
takes 2.25 times fewer products for 3 x 3 filters (4 with larger tiles, at a loss of accuracy): on a
GPU without fast tf32 (V100, RTX 2080, RTX 4090) such a kernel in fp32 could pass this bound; with it
the third of tf32's peak lies above 2.25 times the ordinary cores'.

Source: Williams, Waterman, Patterson, "Roofline", CACM 2009.
"""

from __future__ import annotations

from dataclasses import dataclass

from wpk.dtypes import DType, Precision
from wpk.performance.units import ordinary_peak, tensor_peak
from wpk.problems import Problem
from wpk.targets import Target


@dataclass(frozen=True)
class Bound:
    """The bound of a problem on a target.

    Attributes:
        seconds: No kernel can take less.
        limiter: What limits it: ``global memory``, ``L2``, ``tensor cores`` or ``ordinary cores``.
        bytes: Distinct bytes touched.
        operations: Operations needed, padding left out.
        streamed_bytes: Of the bytes, those that no cache is expected to hold (`Traffic.streamed`); the bound's
            time does not count on that.
    """

    seconds: float
    limiter: str
    bytes: int
    operations: int
    streamed_bytes: int = 0


def bound(problem: Problem, target: Target) -> Bound:
    """Return the bound of any problem on a target."""
    needs = problem.traffic()
    ordinary = ordinary_peak(problem.numbers, target)
    unit, peak = "ordinary cores", ordinary
    if problem.matrix_precision is not None:
        unit, peak = fastest_unit(problem.matrix_precision, target)
    limits = [
        (needs.bytes / target.l2_bandwidth, "L2"),
        (max(0.0, (needs.bytes - target.l2_bytes) / target.global_bandwidth), "global memory"),
        (needs.products / peak, unit),
        (needs.others / ordinary, "ordinary cores"),
    ]
    seconds, limiter = max(limits, key=lambda limit: limit[0])
    operations = needs.products + needs.others
    return Bound(seconds, limiter, needs.bytes, operations, needs.streamed)


def fastest_unit(precision: Precision, target: Target) -> tuple[str, float]:
    """Return the fastest unit that a precision may use, and its operations per second."""
    tensor = tensor_peak(precision, target)
    numbers = DType.FP64 if precision is Precision.FP64 else DType.FP32
    ordinary = ordinary_peak(numbers, target)
    if tensor is not None and tensor > ordinary:
        return "tensor cores", tensor
    return "ordinary cores", ordinary
