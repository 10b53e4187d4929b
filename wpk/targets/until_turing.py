"""Pascal, Volta and Turing. CUDA 13 compiles for the last of them only."""

from wpk.targets.entry import MIB, TURING_PAPER, VOLTA_PAPER, gpu, peaks

_V100_WIDTH = "width not published: V100's 2048 bytes a cycle assumed"

P100 = gpu(
    "sm_60",
    "Pascal GP100 whitepaper (2016) and Tesla P100 datasheet",
    {"l2_bandwidth": _V100_WIDTH, "shared_latency": VOLTA_PAPER},
    name="p100",
    description="NVIDIA Tesla P100 SXM2",
    sm_count=56,
    clock=1.48e9,
    peak_ordinary=10.6e12,
    peak_tensor=(),
    global_bandwidth=732e9,
    l2_bandwidth=2048 * 1.48e9,
    l2_bytes=4 * MIB,
    shared_latency=24,
)

V100 = gpu(
    "sm_70",
    "Volta GV100 whitepaper (2017)",
    {
        "l2_bandwidth": "2048 bytes a cycle (A100 whitepaper's comparison) at the boost clock",
        "shared_latency": VOLTA_PAPER,
    },
    name="v100",
    description="NVIDIA Tesla V100 SXM2",
    sm_count=80,
    clock=1.53e9,
    peak_ordinary=15.7e12,
    peak_tensor=peaks(fp16=125e12),
    global_bandwidth=900e9,
    l2_bandwidth=2048 * 1.53e9,
    l2_bytes=6 * MIB,
    shared_latency=19,
)

RTX2080 = gpu(
    "sm_75",
    "Turing TU102/TU104 whitepaper (2018), reference clock; fp16 with fp32 accumulation",
    {"l2_bandwidth": _V100_WIDTH, "shared_latency": TURING_PAPER},
    name="rtx2080",
    description="NVIDIA GeForce RTX 2080",
    sm_count=46,
    clock=1.71e9,
    peak_ordinary=10.1e12,
    peak_tensor=peaks(fp16=40.3e12, int8=161.1e12),
    global_bandwidth=448e9,
    l2_bandwidth=2048 * 1.71e9,
    l2_bytes=4 * MIB,
    shared_latency=19,
)

T4 = gpu(
    "sm_75",
    "T4 datasheet (2018, 2019) and Turing whitepaper, appendix on the T4; fp16 with fp32 accumulation",
    {
        "l2_bandwidth": _V100_WIDTH,
        "shared_latency": TURING_PAPER,
        "peak_ordinary": "40 SMs * 128 operations a cycle at the boost clock (datasheet: 8.1e12)",
        "peak_tensor": "40 SMs * 1024 operations a cycle at the boost clock (datasheet: 65e12)",
    },
    name="t4",
    description="NVIDIA T4",
    sm_count=40,
    clock=1.59e9,
    peak_ordinary=8.14e12,
    peak_tensor=peaks(fp16=65.1e12, int8=130e12),
    global_bandwidth=320e9,
    l2_bandwidth=2048 * 1.59e9,
    l2_bytes=4 * MIB,
    shared_latency=19,
)
