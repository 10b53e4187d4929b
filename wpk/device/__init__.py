"""Execution on NVIDIA GPUs: the launch protocol on CUDA, arrays and streams of others, measuring."""

from wpk.device.arrays import lies_on_gpu, read_array
from wpk.device.cuda import CudaDevice
from wpk.device.dlpack import CUDA, make_capsule
from wpk.device.errors import GpuLostError, GpuTimeoutError, TrampledError
from wpk.device.facts import GpuFacts, differences, executes
from wpk.device.foreign_array import ForeignArray
from wpk.device.graph import CudaGraph, bindings
from wpk.device.measuring import measure, warm
from wpk.device.memory import pin
from wpk.device.packages import INSTALL_GPU_PACKAGES
from wpk.device.rotation import MemoryRange
from wpk.device.step_times import step_seconds
from wpk.device.streams import (
    LEGACY_STREAM,
    Mark,
    StreamDevice,
    StreamReplay,
    stream_handle,
)
from wpk.device.timing import (
    Patience,
    Subject,
    Timing,
    noise_band,
    quantile,
    time_side_by_side,
)
