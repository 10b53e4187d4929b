"""Ada: L4, L40S and GeForce RTX 40 (8.9)."""

from wpk.targets.entry import HOPPER_PAPER, MIB, gpu, peaks

_SAME_SM = HOPPER_PAPER + " (measured on an RTX 4090, the same SM)"
_WHITEPAPER = "Ada GPU architecture whitepaper (2022); dense, fp32 accumulation"

L4 = gpu(
    "sm_89",
    "L4 datasheet (2023); dense",
    {
        "shared_latency": _SAME_SM,
        "sm_count": "read off an L4 (CUDA's deviceQuery): 58 SMs, 2040 MHz",
        "clock": "read off an L4 (CUDA's deviceQuery): 58 SMs, 2040 MHz",
        "l2_bytes": "Ada GPU architecture whitepaper (2022, v2): AD104, 48 MB",
    },
    name="l4",
    description="NVIDIA L4",
    sm_count=58,
    clock=2.04e9,
    peak_ordinary=30.3e12,
    peak_tensor=peaks(tf32=60.5e12, fp16=121e12, bf16=121e12, int8=242e12),
    global_bandwidth=300e9,
    l2_bytes=48 * MIB,
    shared_latency=30,
)

L40S = gpu(
    "sm_89",
    "L40S datasheet (2023); dense",
    {
        "shared_latency": _SAME_SM,
        "sm_count": "read off an L40S (CUDA's deviceQuery): 142 SMs, 2520 MHz",
        "clock": "read off an L40S (CUDA's deviceQuery): 142 SMs, 2520 MHz",
        "l2_bytes": "read off an L40S (CUDA's deviceQuery)",
        "peak_tensor": "142 SMs * 1024 (tf32: 512) operations a cycle at the boost clock; the "
        "datasheet says 362e12 and 183e12",
    },
    name="l40s",
    description="NVIDIA L40S",
    sm_count=142,
    clock=2.52e9,
    peak_ordinary=91.6e12,
    peak_tensor=peaks(tf32=183.2e12, fp16=366.4e12, bf16=366.4e12, int8=733e12),
    global_bandwidth=864e9,
    l2_bytes=96 * MIB,
    shared_latency=30,
)

RTX4080 = gpu(
    "sm_89",
    _WHITEPAPER,
    {"shared_latency": _SAME_SM},
    name="rtx4080",
    description="NVIDIA GeForce RTX 4080",
    sm_count=76,
    clock=2.505e9,
    peak_ordinary=48.7e12,
    peak_tensor=peaks(tf32=48.7e12, fp16=97.5e12, bf16=97.5e12, int8=389.9e12),
    global_bandwidth=716.8e9,
    l2_bytes=64 * MIB,
    shared_latency=30,
)

RTX4090 = gpu(
    "sm_89",
    _WHITEPAPER,
    {"shared_latency": HOPPER_PAPER},
    name="rtx4090",
    description="NVIDIA GeForce RTX 4090",
    sm_count=128,
    clock=2.52e9,
    peak_ordinary=82.6e12,
    peak_tensor=peaks(tf32=82.6e12, fp16=165.2e12, bf16=165.2e12, int8=660.6e12),
    global_bandwidth=1008e9,
    l2_bytes=72 * MIB,
    shared_latency=30,
)
