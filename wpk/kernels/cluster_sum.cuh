// A matrix product whose reduction is split among the blocks of a cluster (sm_90): each puts its sums into its own
// shared memory, and adds all parts of its share of the columns, always in the same order.
#pragma once

#include <wpk/kernels/cluster.cuh>
#include <wpk/kernels/vector.cuh>

namespace wpk
{

// The sums of a share, 1 / Parts of every thread's `values`, over all blocks; the `part`-th block of the cluster gets
// the `part`-th share. `memory` is Count * Threads floats of shared memory, free for the block to use, and again
// behind this. Threads from Threads on hold nothing. All threads of all blocks of the cluster call it.
template <int Parts, int Threads, int Count>
WPK_DEVICE void sumOfCluster(float (&share)[Count / Parts], const float (&values)[Count], float* memory, int part)
{
    static_assert(Count % (4 * Parts) == 0, "shares are whole vectors");
    const int thread = static_cast<int>(threadIdx.x);
    if (thread < Threads)
    {
        WPK_UNROLL
        for (int i = 0; i < Count; i += 4)
            store<float, 4>(
                memory + i * Threads + thread * 4, {values[i], values[i + 1], values[i + 2], values[i + 3]});
    }
    syncCluster(); // all parts are there
    if (thread < Threads)
    {
        const SharedAddress own = sharedAddress(memory + part * (Count / Parts) * Threads + thread * 4);
        WPK_UNROLL
        for (int block = 0; block < Parts; ++block)
        {
            const ClusterAddress from = clusterAddress(own, block);
            WPK_UNROLL
            for (int i = 0; i < Count / Parts; i += 4)
            {
                const auto vector = loadCluster<float, 4>(from + i * Threads * 4);
                WPK_UNROLL
                for (int e = 0; e < 4; ++e)
                    share[i + e] = block == 0 ? vector[e] : share[i + e] + vector[e];
            }
        }
    }
    syncCluster(); // nobody ends, or writes there again, while others read
}

} // namespace wpk
