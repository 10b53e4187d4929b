// Aligned accesses of 1, 2, 4, 8 or 16 bytes: one memory instruction each.
#pragma once

#include <wpk/kernels/portable.cuh>

namespace wpk
{

// N values of T that travel together. N * sizeof(T) is 1, 2, 4, 8 or 16 bytes, and so is its alignment.
template <class T, int N>
struct alignas(sizeof(T) * N) Vector
{
    static_assert(N > 0 && sizeof(T) * N <= 16 && (sizeof(T) * N & (sizeof(T) * N - 1)) == 0,
        "a vector is 1, 2, 4, 8 or 16 bytes");
    T values[N];
    WPK_DEVICE T& operator[](int i)
    {
        return values[i];
    }
    WPK_DEVICE const T& operator[](int i) const
    {
        return values[i];
    }
};

#if WPK_ON_GPU
namespace detail
{
template <int Bytes>
using Word =
    Select<Bytes == 1, uint8, Select<Bytes == 2, uint16, Select<Bytes == 4, uint32, Select<Bytes == 8, uint2, uint4>>>>;
} // namespace detail
#endif

// All bits zero, which is the value 0 in every storage type.
template <class T, int N>
WPK_DEVICE Vector<T, N> zeroVector()
{
    Vector<T, N> vector;
    memset(&vector, 0, sizeof(vector));
    return vector;
}

// Reads N values at `pointer` (global or shared memory), which is aligned to N * sizeof(T).
template <class T, int N>
WPK_DEVICE Vector<T, N> load(const T* pointer)
{
    Vector<T, N> vector;
#if WPK_ON_GPU
    using Word = detail::Word<sizeof(T) * N>;
    const Word word = *reinterpret_cast<const Word*>(pointer);
    memcpy(&vector, &word, sizeof(vector));
#else
#if WPK_EMULATOR_CHECKS
    wpk_emulator_access(pointer, sizeof(vector), 0);
#endif
    memcpy(&vector, pointer, sizeof(vector));
#endif
    return vector;
}

// Writes N values to `pointer` (global or shared memory), which is aligned to N * sizeof(T).
template <class T, int N>
WPK_DEVICE void store(T* pointer, const Vector<T, N>& vector)
{
#if WPK_ON_GPU
    using Word = detail::Word<sizeof(T) * N>;
    Word word;
    memcpy(&word, &vector, sizeof(vector));
    *reinterpret_cast<Word*>(pointer) = word;
#else
#if WPK_EMULATOR_CHECKS
    wpk_emulator_access(pointer, sizeof(vector), 1);
#endif
    memcpy(pointer, &vector, sizeof(vector));
#endif
}

} // namespace wpk
