// Writes into the shared memory of another block of the cluster that nobody waits for but that block (sm_90): a
// barrier there counts their bytes, which that block announces with arriveExpectBytes.
//
// Target and barrier lie in the same block. Behind its waitBarrierOfCluster the bytes can be read there.
#pragma once

#include <wpk/kernels/barriers/cluster.cuh>
#include <wpk/kernels/copies/vector.cuh>

namespace wpk
{

// Starts to store N values of T, 4, 8 or 16 bytes, aligned to their size.
template <class T, int N>
WPK_DEVICE void storeAsync(ClusterAddress target, const Vector<T, N>& vector, ClusterAddress barrier)
{
    constexpr int bytes = sizeof(T) * N;
    static_assert(bytes == 4 || bytes == 8 || bytes == 16, "4, 8 or 16 bytes");
#if WPK_ON_GPU
    uint32 words[bytes / 4];
    memcpy(words, &vector, bytes);
    if constexpr (bytes == 4)
    {
        asm volatile(
            "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" ::"r"(target.value),
            "r"(words[0]), "r"(barrier.value)
            : "memory");
    }
    else if constexpr (bytes == 8)
    {
        asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.u32 [%0], {%1, %2}, [%3];" ::"r"(
                         target.value),
            "r"(words[0]), "r"(words[1]), "r"(barrier.value)
            : "memory");
    }
    else
    {
        asm volatile(
            "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.u32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(
                target.value),
            "r"(words[0]), "r"(words[1]), "r"(words[2]), "r"(words[3]), "r"(barrier.value)
            : "memory");
    }
#else
    wpk_emulator_async_store(target.value, &vector, bytes, barrier.value);
#endif
}

// Starts to copy `bytes` of this block's shared memory; bytes and addresses are multiples of 16. Threads that wrote
// the source have called fenceAsyncProxy; it may be written again when the other block has waited.
WPK_DEVICE void copyToBlock(ClusterAddress target, SharedAddress source, int bytes, ClusterAddress barrier)
{
#if WPK_ON_GPU
    asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     target.value),
        "r"(source), "r"(bytes), "r"(barrier.value)
        : "memory");
#else
    wpk_emulator_bulk_copy(target.value, reinterpret_cast<const void*>(source), bytes, barrier.value);
#endif
}

} // namespace wpk
