"""GPUs of a machine, as their drivers describe them."""

from wpk.device import GpuFacts

H200 = GpuFacts(
    *("NVIDIA H200 (sm_90)", (9, 0), "13.0", "13.0"), *(132, 1.98e9, 60 << 20, 227 << 10)
)
