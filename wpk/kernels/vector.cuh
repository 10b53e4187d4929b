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

namespace detail
{
#if WPK_ON_GPU
template <int Bytes>
struct Word;
template <>
struct Word<1>
{
    using Type = uint8;
};
template <>
struct Word<2>
{
    using Type = uint16;
};
template <>
struct Word<4>
{
    using Type = uint32;
};
template <>
struct Word<8>
{
    using Type = uint2;
};
template <>
struct Word<16>
{
    using Type = uint4;
};
#endif
} // namespace detail

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
    using Word = typename detail::Word<sizeof(T) * N>::Type;
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
    using Word = typename detail::Word<sizeof(T) * N>::Type;
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
