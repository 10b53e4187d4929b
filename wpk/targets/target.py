"""A GPU as the compiler and the performance models see it (DeepCuts table 5, and what grew beyond it)."""

from dataclasses import dataclass

from wpk.dtypes import Precision


@dataclass(frozen=True)
class Target:
    """Architecture parameters of one GPU. Bytes, seconds, hertz, operations per second.

    Attributes:
        name: Short name, e.g. ``h200``.
        description: Marketing name, e.g. ``NVIDIA H200 SXM``.
        arch: What the compiler builds for, e.g. ``sm_90a``; compute capability in ``capability``.
        capability: Major and minor compute capability.
        sm_count: Streaming multiprocessors (NUM_SM).
        clock: Boost clock.
        peak_ordinary: Peak fp32 operations per second of the ordinary cores (PERF_peak).
        peak_double: Peak fp64 operations per second of the ordinary cores.
        peak_tensor: Dense peak of the tensor cores by precision; a precision that is missing is one
            the tensor cores do not have.
        global_bandwidth: Peak bandwidth of global memory (BW_global).
        l2_bandwidth: Peak bandwidth of the L2 cache.
        l2_bytes: Size of the L2 cache.
        transaction_bytes: Bytes of a global memory transaction (TRANS_global times the element size).
        shared_latency: Cycles of a shared memory load (LAT_shared).
        max_shared_block: Bytes of shared memory that one block may ask for (MAX_shared).
        max_shared_sm: Bytes of shared memory of an SM.
        max_threads_block: Threads of a block at most (MAX_thread).
        max_threads_sm: Resident threads of an SM.
        max_blocks_sm: Resident blocks of an SM.
        registers_sm: 32-bit registers of an SM.
        launch_seconds: Floor of one dependent kernel in a CUDA graph.
        sources: Where each number comes from, by attribute.
    """

    name: str
    description: str
    arch: str
    capability: tuple[int, int]
    sm_count: int
    clock: float
    peak_ordinary: float
    peak_double: float
    peak_tensor: tuple[tuple[Precision, float], ...]
    global_bandwidth: float
    l2_bandwidth: float
    l2_bytes: int
    transaction_bytes: int
    shared_latency: int
    max_shared_block: int
    max_shared_sm: int
    max_threads_block: int
    max_threads_sm: int
    max_blocks_sm: int
    registers_sm: int
    launch_seconds: float
    sources: tuple[tuple[str, str], ...] = ()

    def tensor_peak(self, precision: Precision) -> float | None:
        """Dense tensor-core peak at a precision, or None where the GPU has no such unit."""
        return dict(self.peak_tensor).get(precision.unit)

    @property
    def has_async_copy(self) -> bool:
        """Whether cp.async exists (sm_80 and later)."""
        return self.capability >= (8, 0)
