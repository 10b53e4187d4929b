// Barriers for some of a block's warps: those that copy go on while those that compute meet.
#pragma once

#include <wpk/kernels/portable.cuh>

namespace wpk
{

// Returns when `threads` threads (whole warps, the lanes of each together) have called it with this number, 1 to
// 15; what they wrote to shared memory before can then be read by all of them. All callers give the same
// `threads`. Number 0 is that of __syncthreads.
WPK_DEVICE void syncThreads(int barrier, int threads)
{
#if WPK_ON_GPU
    __syncwarp(); // lanes that took different ways before
    asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
#else
    wpk_emulator_named_barrier(barrier, threads);
#endif
}

} // namespace wpk
