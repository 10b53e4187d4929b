"""Hopper (9.0) and Blackwell: B200 (10.0), Jetson Thor (11.0), GeForce RTX 50 (12.0)."""

from dataclasses import replace

from wpk.targets.entry import HOPPER_PAPER, MIB, gpu, peaks

_L2_HOPPER = (
    "width not published: A100's 5120 bytes a cycle assumed, at the boost clock; reading 24 and "
    "40 MB again and again on an H200 reached 4.5 and 4.9e12"
)
_H100_CLOCK = "peak_ordinary / (132 SMs * 256 operations a cycle)"

H100 = gpu(
    "sm_90a",
    "H100 whitepaper (2022) and H100 datasheet",
    {"clock": _H100_CLOCK, "l2_bandwidth": _L2_HOPPER, "shared_latency": HOPPER_PAPER},
    name="h100",
    description="NVIDIA H100 SXM5 80 GB",
    sm_count=132,
    clock=1.98e9,
    peak_ordinary=66.9e12,
    peak_tensor=peaks(tf32=494.7e12, fp16=989.4e12, bf16=989.4e12, int8=1978.9e12, fp64=66.9e12),
    global_bandwidth=3352e9,
    l2_bandwidth=5120 * 1.98e9,
    l2_bytes=50 * MIB,
    shared_latency=29,
)

H100_PCIE = gpu(
    "sm_90a",
    "H100 whitepaper (2022, PCIe column); dense",
    {
        "clock": "read off an H100 PCIe (CUDA's deviceQuery): 114 SMs, 1755 MHz",
        "global_bandwidth": "read off an H100 PCIe: 5120 bits at 1593 MHz, twice a cycle",
        "l2_bandwidth": _L2_HOPPER,
        "shared_latency": HOPPER_PAPER,
    },
    name="h100-pcie",
    description="NVIDIA H100 PCIe 80 GB",
    sm_count=114,
    clock=1.755e9,
    peak_ordinary=51.2e12,
    peak_tensor=peaks(tf32=378e12, fp16=756e12, bf16=756e12, int8=1513e12, fp64=51.2e12),
    global_bandwidth=2039e9,
    l2_bandwidth=5120 * 1.755e9,
    l2_bytes=50 * MIB,
    shared_latency=29,
)

H200 = replace(
    H100,
    name="h200",
    description="NVIDIA H200 SXM 141 GB",
    global_bandwidth=4800e9,
    l2_bytes=60 * MIB,
    sources=tuple(
        sorted(
            {
                **dict(H100.sources),
                **dict.fromkeys(
                    ("description", "sm_count", "peak_ordinary", "peak_tensor"),
                    "H200 datasheet (2023); the GPU is H100's (H100 whitepaper)",
                ),
                "global_bandwidth": "H200 datasheet; reading 4 GB reached 4.46e12",
                "l2_bytes": "read off an H200 (driver 580.159.04)",
                "launch_seconds": "measured on an H200: a dependent read and write in a chain of "
                "early-launched kernels 1.2e-6; an empty dependent kernel 0.5e-6 (1 block) to "
                "0.8e-6 (528 blocks)",
            }.items()
        )
    ),
)

B200 = gpu(
    "sm_100a",
    "Blackwell architecture technical brief and HGX B200 datasheet (2024), dense",
    {
        "sm_count": "74 SMs on each of two dies (Chips and Cheese, 'Nvidia's B200', 2025)",
        "clock": "that of H100 SXM (Chips and Cheese 2025: clocks are similar)",
        "l2_bytes": "Chips and Cheese 2025",
        "l2_bandwidth": "width not published: twice A100's assumed (two dies), at the boost clock",
        "shared_latency": "not measured; H100's",
    },
    name="b200",
    description="NVIDIA B200 SXM 192 GB",
    sm_count=148,
    clock=1.98e9,
    peak_ordinary=80e12,
    peak_double=40e12,
    peak_tensor=peaks(tf32=1125e12, fp16=2250e12, bf16=2250e12, int8=4500e12, fp64=40e12),
    global_bandwidth=8000e9,
    l2_bandwidth=2 * 5120 * 1.98e9,
    l2_bytes=126 * MIB,
    shared_latency=29,
)

THOR = gpu(
    "sm_110",
    "Jetson T5000 module datasheet (2025)",
    {
        "sm_count": "read off a Jetson AGX Thor (CUDA's deviceQuery)",
        "peak_ordinary": "20 SMs * 256 operations a cycle at the boost clock",
        "peak_double": "not published; B200's 64 multiply-adds a cycle and SM assumed, which is the most "
        "that an SM has",
        "peak_tensor": "datasheet: 2070 sparse fp4 TFLOPS; dense is half, fp16 and bf16 a quarter of "
        "that and tf32 an eighth, as with B200",
        "l2_bytes": "read off a Jetson AGX Thor (CUDA's deviceQuery)",
        "shared_latency": "not measured; H100's",
    },
    name="thor",
    description="NVIDIA Jetson AGX Thor (T5000)",
    sm_count=20,
    clock=1.575e9,
    peak_ordinary=8.06e12,
    peak_double=4.03e12,
    peak_tensor=peaks(tf32=129.4e12, fp16=258.75e12, bf16=258.75e12, int8=517.5e12),
    global_bandwidth=273e9,
    l2_bytes=32 * MIB,
    shared_latency=29,
)

_RTX_BLACKWELL = "RTX Blackwell GPU architecture whitepaper (2025); dense, fp32 accumulation"
_ADA_LATENCY = f"not measured; RTX 4090's ({HOPPER_PAPER})"

RTX5080 = gpu(
    "sm_120",
    _RTX_BLACKWELL,
    {"shared_latency": _ADA_LATENCY},
    name="rtx5080",
    description="NVIDIA GeForce RTX 5080",
    sm_count=84,
    clock=2.617e9,
    peak_ordinary=56.3e12,
    peak_tensor=peaks(tf32=56.3e12, fp16=112.6e12, bf16=112.6e12, int8=450.2e12),
    global_bandwidth=960e9,
    l2_bytes=64 * MIB,
    shared_latency=30,
)

RTX5090 = gpu(
    "sm_120",
    _RTX_BLACKWELL,
    {"shared_latency": _ADA_LATENCY},
    name="rtx5090",
    description="NVIDIA GeForce RTX 5090",
    sm_count=170,
    clock=2.407e9,
    peak_ordinary=104.8e12,
    peak_tensor=peaks(tf32=104.8e12, fp16=209.5e12, bf16=209.5e12, int8=838e12),
    global_bandwidth=1792e9,
    l2_bytes=96 * MIB,
    shared_latency=30,
)
