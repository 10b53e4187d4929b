// Blocks that run together (sm_90): the barrier of a cluster, and the shared memory of its other blocks.
//
// A block touches another one's shared memory only behind a first barrier of the cluster (before it, the other
// may not have begun), and no block ends before the last access to its own: usually a last barrier says so.
#pragma once

#include <wpk/kernels/copies/vector.cuh>
#include <wpk/kernels/portable.cuh>

namespace wpk
{

// This block's number in its cluster: x first, then y, z.
WPK_DEVICE int clusterRank()
{
#if WPK_ON_GPU
    int rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
#else
    return static_cast<int>(wpk_emulator_thread->block->rank);
#endif
}

// How many blocks the cluster has.
WPK_DEVICE int clusterBlocks()
{
#if WPK_ON_GPU
    int blocks;
    asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(blocks));
    return blocks;
#else
    return static_cast<int>(wpk_emulator_thread->block->blocksOfCluster);
#endif
}

// The barrier of the cluster in two halves: every thread arrives, goes on with what concerns nobody else, and
// waits. What threads wrote to shared or global memory before they arrived can be read by all behind the wait.
// The lanes of a warp call either together.
WPK_DEVICE void arriveCluster()
{
#if WPK_ON_GPU
    __syncwarp(); // lanes that took different ways before
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
#else
    wpk_emulator_cluster_arrive();
#endif
}
// The same where nobody is told what this thread wrote, which takes a fence of all memory: it has only ended to read,
// or has prepared barriers, behind fenceBarrierInit.
WPK_DEVICE void arriveReadCluster()
{
#if WPK_ON_GPU
    __syncwarp();
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
#else
    wpk_emulator_cluster_arrive();
#endif
}
WPK_DEVICE void waitCluster()
{
#if WPK_ON_GPU
    __syncwarp();
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#else
    wpk_emulator_cluster_wait();
#endif
}
WPK_DEVICE void syncCluster()
{
    arriveCluster();
    waitCluster();
}

// A place in the shared memory of a block of the cluster. Byte arithmetic is allowed.
struct ClusterAddress
{
    SharedAddress value;
};
WPK_DEVICE ClusterAddress operator+(ClusterAddress address, int bytes)
{
    return {address.value + static_cast<SharedAddress>(bytes)};
}

// Where block `rank` of the cluster, this one or another, has what this block has at `address`.
WPK_DEVICE ClusterAddress clusterAddress(SharedAddress address, int rank)
{
#if WPK_ON_GPU
    ClusterAddress there;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there.value) : "r"(address), "r"(rank));
    return there;
#else
    return {wpk_emulator_cluster_address(address, rank)};
#endif
}

// Reads N values of T, 4, 8 or 16 bytes, aligned to their size.
template <class T, int N>
WPK_DEVICE Vector<T, N> loadCluster(ClusterAddress source)
{
    constexpr int bytes = sizeof(T) * N;
    static_assert(bytes == 4 || bytes == 8 || bytes == 16, "4, 8 or 16 bytes");
    Vector<T, N> vector;
#if WPK_ON_GPU
    uint32 words[bytes / 4];
    if constexpr (bytes == 4)
    {
        asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(words[0]) : "r"(source.value) : "memory");
    }
    else if constexpr (bytes == 8)
    {
        asm volatile("ld.shared::cluster.v2.u32 {%0, %1}, [%2];"
            : "=r"(words[0]), "=r"(words[1])
            : "r"(source.value)
            : "memory");
    }
    else
    {
        asm volatile("ld.shared::cluster.v4.u32 {%0, %1, %2, %3}, [%4];"
            : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
            : "r"(source.value)
            : "memory");
    }
    memcpy(&vector, words, bytes);
#else
    wpk_emulator_cluster_access(source.value, bytes);
    memcpy(&vector, reinterpret_cast<const void*>(source.value), bytes);
#endif
    return vector;
}

// Writes N values of T, 4, 8 or 16 bytes, aligned to their size.
template <class T, int N>
WPK_DEVICE void storeCluster(ClusterAddress target, const Vector<T, N>& vector)
{
    constexpr int bytes = sizeof(T) * N;
    static_assert(bytes == 4 || bytes == 8 || bytes == 16, "4, 8 or 16 bytes");
#if WPK_ON_GPU
    uint32 words[bytes / 4];
    memcpy(words, &vector, bytes);
    if constexpr (bytes == 4)
    {
        asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(target.value), "r"(words[0]) : "memory");
    }
    else if constexpr (bytes == 8)
    {
        asm volatile("st.shared::cluster.v2.u32 [%0], {%1, %2};" ::"r"(target.value), "r"(words[0]), "r"(words[1])
            : "memory");
    }
    else
    {
        asm volatile("st.shared::cluster.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(target.value), "r"(words[0]),
            "r"(words[1]), "r"(words[2]), "r"(words[3])
            : "memory");
    }
#else
    wpk_emulator_cluster_access(target.value, bytes);
    memcpy(reinterpret_cast<void*>(target.value), &vector, bytes);
#endif
}

// Adds atomically; float sums depend on the order in which blocks come.
WPK_DEVICE void addCluster(ClusterAddress target, float value)
{
#if WPK_ON_GPU
    asm volatile("red.relaxed.cluster.shared::cluster.add.f32 [%0], %1;" ::"r"(target.value), "f"(value) : "memory");
#else
    wpk_emulator_cluster_access(target.value, 4);
    *reinterpret_cast<float*>(target.value) += value; // a cluster runs on one thread of the operating system
#endif
}
WPK_DEVICE void addCluster(ClusterAddress target, int value)
{
#if WPK_ON_GPU
    asm volatile("red.relaxed.cluster.shared::cluster.add.s32 [%0], %1;" ::"r"(target.value), "r"(value) : "memory");
#else
    wpk_emulator_cluster_access(target.value, 4);
    *reinterpret_cast<int*>(target.value) += value;
#endif
}

} // namespace wpk
