"""Ampere: A100 and A30 (8.0), A10 and GeForce RTX 30 (8.6), Jetson AGX Orin (8.7)."""

from dataclasses import replace
from typing import Any

from wpk.targets.entry import HOPPER_PAPER, KIB, MIB, gpu, peaks
from wpk.targets.target import Target

_A100_WIDTH = "5120 bytes a cycle (A100 whitepaper) at the boost clock"
_A100_LATENCY = f"not measured; A100's ({HOPPER_PAPER})"

A100 = gpu(
    "sm_80",
    "A100 whitepaper (2020) and A100 80 GB datasheet",
    {"l2_bandwidth": _A100_WIDTH, "shared_latency": HOPPER_PAPER},
    name="a100",
    description="NVIDIA A100 SXM4 80 GB",
    sm_count=108,
    clock=1.41e9,
    peak_ordinary=19.5e12,
    peak_tensor=peaks(tf32=156e12, fp16=312e12, bf16=312e12, int8=624e12, fp64=19.5e12),
    global_bandwidth=2039e9,
    l2_bandwidth=5120 * 1.41e9,
    l2_bytes=40 * MIB,
    shared_latency=29,
)

A100_40GB = replace(
    A100,
    name="a100-40gb",
    description="NVIDIA A100 40 GB, SXM4 or PCIe",
    global_bandwidth=1555e9,
    sources=tuple(
        (key, "A100 whitepaper (2020): 40 GB of HBM2" if key == "global_bandwidth" else source)
        for key, source in A100.sources
    ),
)

A30 = gpu(
    "sm_80",
    "A30 datasheet (2021); the SM is A100's (A100 whitepaper)",
    {
        "shared_latency": HOPPER_PAPER + "; the same SM",
        "clock": "peak_ordinary / (56 SMs * 128 operations a cycle), A30 product brief",
        "sm_count": "3584 cores (A30 product brief), 64 an SM",
        "l2_bytes": "not in NVIDIA's datasheet; TechPowerUp's GPU database",
    },
    name="a30",
    description="NVIDIA A30",
    sm_count=56,
    clock=1.44e9,
    peak_ordinary=10.3e12,
    peak_tensor=peaks(tf32=82e12, fp16=165e12, bf16=165e12, int8=330e12, fp64=10.3e12),
    global_bandwidth=933e9,
    l2_bytes=24 * MIB,
    shared_latency=29,
)

A10 = gpu(
    "sm_86",
    "A10 datasheet (2021)",
    {
        "shared_latency": _A100_LATENCY,
        "sm_count": "read off an A10 (CUDA's deviceQuery): 72 SMs, 1695 MHz",
        "clock": "read off an A10 (CUDA's deviceQuery): 72 SMs, 1695 MHz",
        "l2_bytes": "read off an A10 (CUDA's deviceQuery)",
    },
    name="a10",
    description="NVIDIA A10",
    sm_count=72,
    clock=1.695e9,
    peak_ordinary=31.2e12,
    peak_tensor=peaks(tf32=62.5e12, fp16=125e12, bf16=125e12, int8=250e12),
    global_bandwidth=600e9,
    l2_bytes=6 * MIB,
    shared_latency=29,
)

_GA102 = "GA102 whitepaper (2020, RTX 30 comparison); dense, fp32 accumulation"


def _geforce(name: str, sources: dict[str, str] | None = None, **facts: Any) -> Target:
    """A GeForce RTX 30, whose tensor cores take twice (fp16, bf16) or once (tf32) the fp32 operations."""
    ordinary = facts["peak_ordinary"]
    return gpu(
        "sm_86",
        _GA102,
        {"shared_latency": _A100_LATENCY} | (sources or {}),
        name=name,
        description=f"NVIDIA GeForce RTX {name.removeprefix('rtx')}",
        peak_tensor=peaks(tf32=ordinary, fp16=2 * ordinary, bf16=2 * ordinary, int8=8 * ordinary),
        shared_latency=29,
        **facts,
    )


_RTX3060_PAGE = "GeForce RTX 3060 12 GB specifications (nvidia.com, 2021)"

RTX3060 = _geforce(
    "rtx3060",
    dict.fromkeys(("description", "sm_count", "clock", "peak_ordinary"), _RTX3060_PAGE)
    | {
        "global_bandwidth": "192 bits of 15 Gbit/s (" + _RTX3060_PAGE + ")",
        "peak_tensor": "GA102 whitepaper's operations a cycle and SM, at RTX 3060's SMs and clock",
        "l2_bytes": "read off an RTX 3060 (CUDA's deviceQuery)",
    },
    sm_count=28,
    clock=1.777e9,
    peak_ordinary=12.74e12,
    global_bandwidth=360e9,
    l2_bytes=2304 * KIB,
)

RTX3070 = _geforce(
    "rtx3070",
    sm_count=46,
    clock=1.725e9,
    peak_ordinary=20.3e12,
    global_bandwidth=448e9,
    l2_bytes=4 * MIB,
)

RTX3080 = _geforce(
    "rtx3080",
    sm_count=68,
    clock=1.71e9,
    peak_ordinary=29.8e12,
    global_bandwidth=760e9,
    l2_bytes=5 * MIB,
)

RTX3090 = _geforce(
    "rtx3090",
    sm_count=82,
    clock=1.695e9,
    peak_ordinary=35.6e12,
    global_bandwidth=936e9,
    l2_bytes=6 * MIB,
)

ORIN = gpu(
    "sm_87",
    "Jetson AGX Orin Series technical brief (2022), 64 GB module",
    {
        "shared_latency": _A100_LATENCY,
        "peak_double": "not published by NVIDIA; half of fp32 (TechPowerUp's GPU database)",
        "peak_tensor": "technical brief: 170 sparse int8 TOPS of the GPU; dense is half, fp16 and bf16 "
        "half of that, tf32 again half (the SM's tensor cores are A100's)",
    },
    name="orin",
    description="NVIDIA Jetson AGX Orin 64 GB",
    sm_count=16,
    clock=1.3e9,
    peak_ordinary=5.32e12,
    peak_double=2.66e12,
    peak_tensor=peaks(tf32=21.3e12, fp16=42.6e12, bf16=42.6e12, int8=85.2e12),
    global_bandwidth=204.8e9,
    l2_bytes=4 * MIB,
    shared_latency=29,
)
