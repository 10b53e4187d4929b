// Blocks of a cooperative launch (attribute "cooperative", wpk/launch.py) that wait for each other.
//
// A counter in global memory, zero before the launch, counts arrivals and never falls while blocks may wait for it.
// What a block wrote to global memory before a __syncthreads and the arrival behind it can be read, past L1 (loadFresh,
// copyAsync of 16 bytes), behind the wait for that arrival and a __syncthreads.
#pragma once

#include <wpk/kernels/arrival.cuh>

namespace wpk
{

// One thread of a block, behind a __syncthreads: the block has arrived.
WPK_DEVICE void arriveGrid(int* counter)
{
#if WPK_ON_GPU
    asm volatile("red.release.gpu.global.add.s32 [%0], 1;" ::"l"(counter) : "memory");
#else
    wpk_emulator_grid_arrive(counter);
#endif
}

// One thread of a block, in front of a __syncthreads: returns when so many arrivals are counted.
WPK_DEVICE void waitGrid(const int* counter, int arrivals)
{
#if WPK_ON_GPU
    int seen;
    do
    {
        asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(seen) : "l"(counter) : "memory");
    } while (seen - arrivals < 0);
#else
    wpk_emulator_grid_wait(counter, arrivals);
#endif
}

// One thread of each of `blocks` blocks that wait for nothing any more: leaves both counters zero.
WPK_DEVICE void leaveGrid(int* counter, int* left, int blocks)
{
    __threadfence();
    if (atomicAdd(left, 1) != blocks - 1)
        return;
    *counter = 0;
    *left = 0;
}

} // namespace wpk
