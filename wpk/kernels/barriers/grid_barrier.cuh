// Blocks of a cooperative launch (attribute "cooperative", wpk/launch.py) that wait for each other.
//
// A counter in global memory, zero before the launch, counts arrivals and never falls while blocks may wait for it.
// What a block wrote to global memory before a __syncthreads and the arrival behind it can be read, past L1 (loadFresh,
// copyAsync of 16 bytes), behind the wait for that arrival and a __syncthreads.
#pragma once

#include <wpk/kernels/barriers/arrival.cuh>

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

// Hands 32 bits to blocks that wait for them: the upper half of the word says which they are, so that nothing has to be
// written before something else.
WPK_DEVICE void publishWord(uint64* word, uint32 value, uint32 tag)
{
    const uint64 both = value | static_cast<uint64>(tag) << 32;
#if WPK_ON_GPU
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(word), "l"(both) : "memory");
#else
    wpk_emulator_grid_publish(word, both);
#endif
}

// Waits until the first `count` of N words have the tag.
template <int N>
WPK_DEVICE void awaitWords(const uint64* const (&words)[N], int count, uint32 tag, uint32 (&values)[N])
{
#if WPK_ON_GPU
    bool isMissing;
    do
    {
        isMissing = false;
        uint64 seen[N];
        WPK_UNROLL
        for (int i = 0; i < N; ++i)
        {
            if (i < count)
                asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(seen[i]) : "l"(words[i]) : "memory");
        }
        WPK_UNROLL
        for (int i = 0; i < N; ++i)
        {
            if (i < count)
            {
                values[i] = static_cast<uint32>(seen[i]);
                isMissing |= static_cast<uint32>(seen[i] >> 32) != tag;
            }
        }
    } while (isMissing);
#else
    for (int i = 0; i < minOf(N, count); ++i)
        values[i] = wpk_emulator_grid_await(words[i], tag);
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
