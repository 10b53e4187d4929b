// Barriers in shared memory (sm_90): they count arrivals of threads and bytes of tensor copies.
//
// A barrier is 8 bytes, 8-byte aligned. Its phases alternate between parity 0 and 1, beginning with 0;
// a phase ends when the expected number of threads has arrived and all announced bytes have landed.
#pragma once

#include <wpk/kernels/portable.cuh>

namespace wpk
{

// Prepares a barrier for `arrivals` a phase; one thread calls it, then fenceBarrierInit, then __syncthreads.
WPK_DEVICE void initBarrier(SharedAddress barrier, int arrivals)
{
#if WPK_ON_GPU
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
#else
    wpk_emulator_mbarrier_init(barrier, arrivals);
#endif
}

// Makes new barriers visible to the unit that copies tensors.
WPK_DEVICE void fenceBarrierInit()
{
#if WPK_ON_GPU
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
}

WPK_DEVICE void arriveBarrier(SharedAddress barrier)
{
#if WPK_ON_GPU
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
#else
    wpk_emulator_mbarrier_arrive(barrier, 0);
#endif
}

// Arrives, and announces `bytes` of tensor copies that belong to this phase.
WPK_DEVICE void arriveExpectBytes(SharedAddress barrier, int bytes)
{
#if WPK_ON_GPU
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
#else
    wpk_emulator_mbarrier_arrive(barrier, bytes);
#endif
}

// Waits until the phase of this parity has ended. A fresh barrier lets parity 1 pass at once.
WPK_DEVICE void waitBarrier(SharedAddress barrier, int parity)
{
#if WPK_ON_GPU
    asm volatile("{\n"
                 ".reg .pred done;\n"
                 "again:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@done bra.uni passed;\n"
                 "bra.uni again;\n"
                 "passed:\n"
                 "}" ::"r"(barrier),
        "r"(parity)
        : "memory");
#else
    wpk_emulator_mbarrier_wait(barrier, parity);
#endif
}

} // namespace wpk
