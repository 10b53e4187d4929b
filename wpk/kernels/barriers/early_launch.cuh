// Programmatic dependent launch (sm_90), here "early launch": a kernel begins while the one in front of it still runs,
// and prepares what does not depend on it. It is launched with the attribute "early_launch" (wpk/launch.py), CUDA's
// programmatic stream serialization.
//
// A kernel waits only for the one in front of it, which has waited in its turn; so all earlier kernels are covered
// if each keeps the rules:
// - Behind waitForPrevious lies everything that touches what earlier kernels touch: reading what they wrote,
//   writing what they read or write (memory is used again: outputs, workspace, counters). In front of it lies
//   only what no kernel writes: weights, other constants (prefetch.cuh), tensor maps; and shared memory.
// - Every kernel that is launched early waits, on every path, even where it has nothing to read: otherwise it may
//   end before the kernels in front of it, and the next one would take that end for theirs. A thread waits itself,
//   or meets one that has waited at a __syncthreads before it touches such memory.
#pragma once

#include <wpk/kernels/portable.cuh>

namespace wpk
{

// CUDA's cudaGridDependencySynchronize. Returns when the kernels in front have ended and what they wrote can be read.
// Returns at once where this kernel was not launched early.
WPK_DEVICE void waitForPrevious()
{
#if WPK_ON_GPU && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#elif !WPK_ON_GPU && WPK_EMULATOR_CHECKS
    wpk_emulator_wait_previous();
#endif
}

// CUDA's cudaTriggerProgrammaticLaunchCompletion. Lets the next kernel begin, if it is launched early, once all blocks
// of this one have called it or ended. It says nothing about what was written: that is what the next kernel's wait is
// for. Called too early, the next kernel's blocks take shared memory and registers that blocks of this one still need.
WPK_DEVICE void releaseNext()
{
#if WPK_ON_GPU && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
#endif
}

// The same in templates whose Schedule says whether the kernel is launched early: nothing where it is not.
template <class Schedule>
WPK_DEVICE void waitIfEarly()
{
    if constexpr (Schedule::early)
        waitForPrevious();
}

template <class Schedule>
WPK_DEVICE void releaseIfEarly()
{
    if constexpr (Schedule::early)
        releaseNext();
}

// For kernels that stream, and so leave most of an SM's shared memory and registers to others: the next kernel may
// begin at once. Stands in front of the first access to memory, and of every way out.
template <class Schedule>
WPK_DEVICE void startIfEarly()
{
    releaseIfEarly<Schedule>();
    waitIfEarly<Schedule>();
}

} // namespace wpk
