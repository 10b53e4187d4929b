// Quantises by arguments: for number d of `count` quantisations of n floats each, the bytes, and what comes back of
// them.
#include <wpk/kernels/numbers/expression.cuh>

namespace
{

using namespace wpk;

template <class T, bool Moved, bool Guarded>
WPK_DEVICE void quantise(const float* x, const float* numbers, T* bytes, float* restored, int n, int count)
{
    using Whole = Quantised<T, Acc, 0, Moved, Guarded>;
    using Stored = Result<T, Whole>;
    for (int i = threadIdx.x * 2; i < n * count; i += blockDim.x * 2)
    {
        const float* const own = numbers + i / n * 6;
        const float pair[2] = {Stored::number(x[i % n], own), Stored::number(x[i % n + 1], own)};
        T row[2];
        Stored::store(pair, row);
        for (int e = 0; e < 2; ++e)
        {
            bytes[i + e] = row[e];
            restored[i + e] = Whole::evaluate(x[i % n + e], own);
        }
    }
}

} // namespace

#define WPK_QUANTISE(NAME, TYPE, MOVED, GUARDED)                                                          \
    WPK_KERNEL(32) NAME(const float* x, const float* numbers, TYPE* bytes, float* back, int n, int count) \
    {                                                                                                     \
        quantise<TYPE, MOVED, GUARDED>(x, numbers, bytes, back, n, count);                                \
    }                                                                                                     \
    WPK_EXPORT(NAME)

WPK_QUANTISE(to_uint8, uint8, false, false)
WPK_QUANTISE(to_uint8_moved, uint8, true, false)
WPK_QUANTISE(to_int8, int8, false, true)
WPK_QUANTISE(to_int8_moved, int8, true, true)
WPK_QUANTISE(to_float8_e4m3, Float8E4m3, false, false)
WPK_QUANTISE(to_float8_e5m2, Float8E5m2, false, false)

// Every byte as a float.
WPK_KERNEL(32) restore_bytes(const uint8* bytes, float* of_signed, float* of_unsigned, float* of_e4m3, float* of_e5m2)
{
    for (int i = threadIdx.x; i < 256; i += blockDim.x)
    {
        of_signed[i] = toFloat(static_cast<int8>(bytes[i]));
        of_unsigned[i] = toFloat(bytes[i]);
        of_e4m3[i] = toFloat(Float8E4m3{bytes[i]});
        of_e5m2[i] = toFloat(Float8E5m2{bytes[i]});
    }
}
WPK_EXPORT(restore_bytes)
