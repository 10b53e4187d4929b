"""The GPUs that wpk knows by name, each number with its source.

What the makers do not publish is said to be assumed, never passed off as read. Peaks are upper
limits (the bound divides by them): where a datasheet and a measurement differ, the larger stands
here, and `wpk.performance.estimate` knows what share of it is reached.
"""

from dataclasses import replace
from typing import Any

from wpk.dtypes import Precision
from wpk.targets.target import Target

_KIB = 1024
_MIB = 1024 * _KIB

_DATASHEET = ("description", "sm_count", "clock", "peak_ordinary", "global_bandwidth", "l2_bytes")
_LIMITS = (
    "capability",
    "max_shared_block",
    "max_shared_sm",
    "max_threads_block",
    "max_threads_sm",
    "max_blocks_sm",
    "registers_sm",
)
_GUIDE = "CUDA C++ Programming Guide 12.9 and 13.0, technical specifications per compute capability"
_SECTOR = (
    "32-byte sectors: smallest piece that L2 and global memory move (CUDA best practices guide)"
)
_VOLTA_PAPER = "Jia et al. 2018, arXiv 1804.06826, table 3.1"
_HOPPER_PAPER = "Luo et al. 2024, arXiv 2402.13499, memory latency table"
_UNMEASURED_STEP = "not measured; an H200's measured dependent step"
_L2_AMPERE = "5120 bytes a cycle (A100 whitepaper) at the boost clock"
_L2_HOPPER = (
    "width not published: A100's 5120 bytes a cycle assumed, at the boost clock; reading 24 and "
    "40 MB again and again on an H200 reached 4.5 and 4.9e12"
)


def _sources(datasheet: str, **others: str) -> tuple[tuple[str, str], ...]:
    named = dict.fromkeys(_DATASHEET, datasheet) | dict.fromkeys(_LIMITS, _GUIDE)
    named |= {"transaction_bytes": _SECTOR, "launch_seconds": _UNMEASURED_STEP}
    named |= {"peak_tensor": datasheet} | others
    return tuple(sorted(named.items()))


_ALIKE: dict[str, Any] = {
    "transaction_bytes": 32,
    "max_threads_block": 1024,
    "registers_sm": 65536,
    "launch_seconds": 1.2e-6,
}
"""What is the same of all targets."""

P100 = Target(
    name="p100",
    description="NVIDIA Tesla P100 SXM2",
    arch="sm_60",
    capability=(6, 0),
    sm_count=56,
    clock=1.48e9,
    peak_ordinary=10.6e12,
    peak_tensor=(),
    global_bandwidth=732e9,
    l2_bandwidth=2048 * 1.48e9,
    l2_bytes=4 * _MIB,
    shared_latency=24,
    max_shared_block=48 * _KIB,
    max_shared_sm=64 * _KIB,
    max_threads_sm=2048,
    max_blocks_sm=32,
    sources=_sources(
        "Pascal GP100 whitepaper (2016) and Tesla P100 datasheet",
        l2_bandwidth="width not published: V100's 2048 bytes a cycle assumed",
        shared_latency=_VOLTA_PAPER,
    ),
    **_ALIKE,
)

V100 = Target(
    name="v100",
    description="NVIDIA Tesla V100 SXM2",
    arch="sm_70",
    capability=(7, 0),
    sm_count=80,
    clock=1.53e9,
    peak_ordinary=15.7e12,
    peak_tensor=((Precision.FP16, 125e12),),
    global_bandwidth=900e9,
    l2_bandwidth=2048 * 1.53e9,
    l2_bytes=6 * _MIB,
    shared_latency=19,
    max_shared_block=96 * _KIB,
    max_shared_sm=96 * _KIB,
    max_threads_sm=2048,
    max_blocks_sm=32,
    sources=_sources(
        "Volta GV100 whitepaper (2017)",
        l2_bandwidth="2048 bytes a cycle (A100 whitepaper's comparison) at the boost clock",
        shared_latency=_VOLTA_PAPER,
    ),
    **_ALIKE,
)

RTX2080 = Target(
    name="rtx2080",
    description="NVIDIA GeForce RTX 2080",
    arch="sm_75",
    capability=(7, 5),
    sm_count=46,
    clock=1.71e9,
    peak_ordinary=10.1e12,
    peak_tensor=((Precision.FP16, 40.3e12),),
    global_bandwidth=448e9,
    l2_bandwidth=2048 * 1.71e9,
    l2_bytes=4 * _MIB,
    shared_latency=19,
    max_shared_block=64 * _KIB,
    max_shared_sm=64 * _KIB,
    max_threads_sm=1024,
    max_blocks_sm=16,
    sources=_sources(
        "Turing TU102/TU104 whitepaper (2018), reference clock; fp16 with fp32 accumulation",
        l2_bandwidth="width not published: V100's 2048 bytes a cycle assumed",
        shared_latency="Jia et al. 2019, arXiv 1903.07486 (measured on a T4, the same SM)",
    ),
    **_ALIKE,
)

A100 = Target(
    name="a100",
    description="NVIDIA A100 SXM4 80 GB",
    arch="sm_80",
    capability=(8, 0),
    sm_count=108,
    clock=1.41e9,
    peak_ordinary=19.5e12,
    peak_tensor=((Precision.TF32, 156e12), (Precision.FP16, 312e12), (Precision.BF16, 312e12)),
    global_bandwidth=2039e9,
    l2_bandwidth=5120 * 1.41e9,
    l2_bytes=40 * _MIB,
    shared_latency=29,
    max_shared_block=163 * _KIB,
    max_shared_sm=164 * _KIB,
    max_threads_sm=2048,
    max_blocks_sm=32,
    sources=_sources(
        "A100 whitepaper (2020) and A100 80 GB datasheet",
        l2_bandwidth=_L2_AMPERE,
        shared_latency=_HOPPER_PAPER,
    ),
    **_ALIKE,
)

RTX4090 = Target(
    name="rtx4090",
    description="NVIDIA GeForce RTX 4090",
    arch="sm_89",
    capability=(8, 9),
    sm_count=128,
    clock=2.52e9,
    peak_ordinary=82.6e12,
    peak_tensor=((Precision.TF32, 82.6e12), (Precision.FP16, 165.2e12), (Precision.BF16, 165.2e12)),
    global_bandwidth=1008e9,
    l2_bandwidth=5120 * 2.52e9,
    l2_bytes=72 * _MIB,
    shared_latency=30,
    max_shared_block=99 * _KIB,
    max_shared_sm=100 * _KIB,
    max_threads_sm=1536,
    max_blocks_sm=24,
    sources=_sources(
        "Ada GPU architecture whitepaper (2022); dense, fp32 accumulation",
        l2_bandwidth="width not published: A100's 5120 bytes a cycle assumed, at the boost clock",
        shared_latency=_HOPPER_PAPER,
    ),
    **_ALIKE,
)

H100 = Target(
    name="h100",
    description="NVIDIA H100 SXM5 80 GB",
    arch="sm_90a",
    capability=(9, 0),
    sm_count=132,
    clock=1.98e9,
    peak_ordinary=66.9e12,
    peak_tensor=(
        (Precision.TF32, 494.7e12),
        (Precision.FP16, 989.4e12),
        (Precision.BF16, 989.4e12),
    ),
    global_bandwidth=3352e9,
    l2_bandwidth=5120 * 1.98e9,
    l2_bytes=50 * _MIB,
    shared_latency=29,
    max_shared_block=227 * _KIB,
    max_shared_sm=228 * _KIB,
    max_threads_sm=2048,
    max_blocks_sm=32,
    sources=_sources(
        "H100 whitepaper (2022) and H100 datasheet",
        clock="peak_ordinary / (132 SMs * 256 operations a cycle)",
        l2_bandwidth=_L2_HOPPER,
        shared_latency=_HOPPER_PAPER,
    ),
    **_ALIKE,
)

H200 = replace(
    H100,
    name="h200",
    description="NVIDIA H200 SXM 141 GB",
    global_bandwidth=4800e9,
    l2_bytes=60 * _MIB,
    sources=_sources(
        "H200 datasheet (2023); the GPU is H100's (H100 whitepaper)",
        clock="peak_ordinary / (132 SMs * 256 operations a cycle)",
        global_bandwidth="H200 datasheet; reading 4 GB reached 4.46e12",
        l2_bandwidth=_L2_HOPPER,
        l2_bytes="read off an H200 (driver 580.159.04)",
        shared_latency=_HOPPER_PAPER,
        launch_seconds="measured on an H200: a dependent read and write in a chain of early-launched "
        "kernels 1.2e-6; an empty dependent kernel 0.5e-6 (1 block) to 0.8e-6 (528 blocks)",
    ),
)

B200 = replace(
    H100,
    name="b200",
    description="NVIDIA B200 SXM 192 GB",
    arch="sm_100a",
    capability=(10, 0),
    sm_count=148,
    peak_ordinary=80e12,
    peak_tensor=((Precision.TF32, 1125e12), (Precision.FP16, 2250e12), (Precision.BF16, 2250e12)),
    global_bandwidth=8000e9,
    l2_bandwidth=2 * 5120 * 1.98e9,
    l2_bytes=126 * _MIB,
    sources=_sources(
        "Blackwell architecture technical brief and HGX B200 datasheet (2024), dense",
        sm_count="74 SMs on each of two dies (Chips and Cheese, 'Nvidia's B200', 2025)",
        clock="that of H100 SXM (Chips and Cheese 2025: clocks are similar)",
        l2_bytes="Chips and Cheese 2025",
        l2_bandwidth="width not published: twice A100's assumed (two dies), at the boost clock",
        shared_latency="not measured; H100's",
    ),
)

TARGETS: tuple[Target, ...] = (P100, V100, RTX2080, A100, RTX4090, H100, H200, B200)
"""All targets, the oldest first."""
