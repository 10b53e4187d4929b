// Early launch (sm_90): a kernel begins while the one in front of it still runs, and prepares what does not
// depend on it. It is launched with the attribute "early_launch" (wpk/launch.py).
//
// The kernel in front is on the stream, so this covers every kernel before it too, provided that each of them
// keeps the rules:
// - Behind waitForPrevious lies everything that touches what earlier kernels touch: reading what they wrote,
//   writing what they read or write (memory is used again: outputs, workspace, counters). In front of it lies
//   what no kernel writes: weights, tensor maps, shared memory, barriers.
// - Every kernel that is launched early waits, on every path, even where a thread has nothing to read: the next
//   one only waits for this one's end, and that must not come before the end of all that lies in front. One
//   thread of a block that waits holds the block's end back; others wait before they touch such memory, or meet
//   that thread at a __syncthreads behind its wait.
#pragma once

#include <wpk/kernels/portable.cuh>

namespace wpk
{

// Returns when the kernels in front have ended and what they wrote can be read. Returns at once where this
// kernel was not launched early.
WPK_DEVICE void waitForPrevious()
{
#if WPK_ON_GPU && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// Lets the next kernel begin, if it is launched early, once all blocks of this one have called it or ended. It
// says nothing about what was written: that is what the next kernel's wait is for. Called too early, the next
// kernel's blocks take shared memory and registers that blocks of this one still need.
WPK_DEVICE void releaseNext()
{
#if WPK_ON_GPU && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
#endif
}

} // namespace wpk
