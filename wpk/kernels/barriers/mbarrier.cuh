// Barriers in shared memory (sm_90): they count arrivals of threads and bytes of asynchronous copies.
//
// A barrier is 8 bytes, 8-byte aligned. Its phases alternate between parity 0 and 1, beginning with 0;
// a phase ends when the expected number of threads has arrived and all announced bytes have landed, which
// are less than 2^20 at any time. Threads of other blocks of the cluster arrive too, but only threads of its
// own block wait.
#pragma once

#include <wpk/kernels/barriers/cluster.cuh>
#include <wpk/kernels/portable.cuh>

namespace wpk
{

// Prepares a barrier for `arrivals` a phase; one thread calls it, then fenceBarrierInit, then all meet at
// __syncthreads or, where other blocks use it, at the barrier of the cluster.
WPK_DEVICE void initBarrier(SharedAddress barrier, int arrivals)
{
#if WPK_ON_GPU
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
#else
    wpk_emulator_mbarrier_init(barrier, arrivals);
#endif
}

// Makes new barriers visible to TMA, and to the cluster.
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

// Arrives at a barrier of any block of the cluster. What this thread wrote there or anywhere before can be read
// behind waitBarrierOfCluster.
WPK_DEVICE void arriveBarrier(ClusterAddress barrier)
{
#if WPK_ON_GPU
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(barrier.value) : "memory");
#else
    wpk_emulator_mbarrier_arrive(barrier.value, 0);
#endif
}

// The same where this thread only ends to read: asynchronous copies may write there. Nothing it wrote is told; that
// would take a fence of all memory each time.
WPK_DEVICE void arriveReadBarrier(ClusterAddress barrier)
{
#if WPK_ON_GPU
    asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(barrier.value) : "memory");
#else
    wpk_emulator_mbarrier_arrive(barrier.value, 0);
#endif
}

// Arrives, and announces `bytes` of asynchronous copies that belong to this phase.
WPK_DEVICE void arriveExpectBytes(SharedAddress barrier, int bytes)
{
#if WPK_ON_GPU
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
#else
    wpk_emulator_mbarrier_arrive(barrier, bytes);
#endif
}

// Waits until the phase of this parity has ended. A fresh barrier lets parity 1 pass at once. Behind it lies what
// threads of this block wrote before they arrived, and what was copied asynchronously.
WPK_DEVICE void waitBarrier(SharedAddress barrier, int parity)
{
#if WPK_ON_GPU
    asm volatile("{\n"
                 ".reg .pred done;\n"
                 "again:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@!done bra again;\n"
                 "}" ::"r"(barrier),
        "r"(parity)
        : "memory");
#else
    wpk_emulator_mbarrier_wait(barrier, parity);
#endif
}

// The same, where threads of other blocks arrive: behind it lies what they wrote before.
WPK_DEVICE void waitBarrierOfCluster(SharedAddress barrier, int parity)
{
#if WPK_ON_GPU
    asm volatile("{\n"
                 ".reg .pred done;\n"
                 "again:\n"
                 "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1;\n"
                 "@!done bra again;\n"
                 "}" ::"r"(barrier),
        "r"(parity)
        : "memory");
#else
    wpk_emulator_mbarrier_wait(barrier, parity);
#endif
}

} // namespace wpk
