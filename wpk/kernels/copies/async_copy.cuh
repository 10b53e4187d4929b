// Copies from global to shared memory that run beside the computation (cp.async, sm_80 and later).
//
// A thread sees its own copies after waitCopies; other threads after a __syncthreads that follows it.
#pragma once

#include <wpk/kernels/portable.cuh>

namespace wpk
{

// Starts a copy of Bytes (4, 8 or 16) from global `source` to shared `target`, both aligned to Bytes.
// Only the first `validBytes` (0..Bytes) are read; the rest of the target is set to zero. With
// validBytes 0 the source is not read, but must still be an address within some buffer.
template <int Bytes>
WPK_DEVICE void copyAsync(SharedAddress target, const void* source, int validBytes = Bytes)
{
    static_assert(Bytes == 4 || Bytes == 8 || Bytes == 16, "cp.async copies 4, 8 or 16 bytes");
#if WPK_ON_GPU
    // 16-byte copies pass by L1 (.cg): a tile is read from shared memory afterwards, never again from L1.
    if constexpr (Bytes == 16)
    {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(target), "l"(source), "r"(validBytes)
            : "memory");
    }
    else
    {
        asm volatile(
            "cp.async.ca.shared.global [%0], [%1], %3, %2;" ::"r"(target), "l"(source), "r"(validBytes), "n"(Bytes)
            : "memory");
    }
#elif WPK_EMULATOR_CHECKS
    wpk_emulator_copy_async(target, source, Bytes, validBytes);
#else
    char* const bytes = reinterpret_cast<char*>(target);
    if (validBytes == Bytes)
    {
        memcpy(bytes, source, Bytes);
    }
    else
    {
        memset(bytes, 0, Bytes);
        memcpy(bytes, source, static_cast<unsigned long>(validBytes));
    }
#endif
}

// Closes the group of this thread's copies since the last commit; a group may be empty.
WPK_DEVICE void commitCopies()
{
#if WPK_ON_GPU
    asm volatile("cp.async.commit_group;" ::: "memory");
#elif WPK_EMULATOR_CHECKS
    wpk_emulator_commit_copies();
#endif
}

// Waits until at most N of this thread's youngest groups are still under way.
template <int N>
WPK_DEVICE void waitCopies()
{
#if WPK_ON_GPU
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
#elif WPK_EMULATOR_CHECKS
    wpk_emulator_wait_copies(N);
#endif
}

} // namespace wpk
