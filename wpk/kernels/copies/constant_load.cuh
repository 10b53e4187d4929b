// Loads of what no kernel writes and nobody reads again soon: a large constant.
#pragma once

#include <wpk/kernels/copies/vector.cuh>

namespace wpk
{

// As load, of constants in global memory. From sm_80 on what comes does not stay in L1, where it would take the place
// of what is read again, and L2 brings the neighbours too. It is asked for where it stands in the text: also in front
// of the wait of an early launch, behind which ptxas moves loads by the read-only path (.nc).
template <class T, int N>
WPK_DEVICE Vector<T, N> loadConstantOnce(const T* pointer)
{
#if WPK_ON_GPU && __CUDA_ARCH__ >= 800
    if constexpr (sizeof(T) * N == 16)
    {
        uint4 word;
        asm volatile("ld.global.L1::no_allocate.L2::256B.v4.u32 {%0, %1, %2, %3}, [%4];"
            : "=r"(word.x), "=r"(word.y), "=r"(word.z), "=r"(word.w)
            : "l"(pointer)
            : "memory");
        Vector<T, N> vector;
        memcpy(&vector, &word, sizeof(vector));
        return vector;
    }
#endif
    return load<T, N>(pointer);
}

} // namespace wpk
