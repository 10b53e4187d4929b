// Scalar types as they lie in memory, and their conversions to and from the float that kernels compute in.
#pragma once

#include <wpk/kernels/portable.cuh>

namespace wpk
{

// IEEE binary16 and bfloat16, storage only: arithmetic is done in float.
struct alignas(2) Half
{
    uint16 bits;
};
struct alignas(2) Bfloat16
{
    uint16 bits;
};

WPK_DEVICE float asFloat(uint32 bits)
{
    float value;
    memcpy(&value, &bits, 4);
    return value;
}

WPK_DEVICE uint32 asUint32(float value)
{
    uint32 bits;
    memcpy(&bits, &value, 4);
    return bits;
}

WPK_DEVICE bool isNan(float value)
{
    return (asUint32(value) & 0x7fffffffu) > 0x7f800000u;
}

// The larger of two numbers; NaN where one is NaN (fmaxf would drop it).
WPK_DEVICE float larger(float a, float b)
{
#if WPK_ON_GPU && __CUDA_ARCH__ >= 800
    float result;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
    return result;
#else
    return a > b || isNan(a) ? a : b;
#endif
}
WPK_DEVICE float smaller(float a, float b)
{
#if WPK_ON_GPU && __CUDA_ARCH__ >= 800
    float result;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
    return result;
#else
    return a < b || isNan(a) ? a : b;
#endif
}

// Of float and of integers.
template <class T>
WPK_DEVICE float toFloat(T value)
{
    return static_cast<float>(value);
}
WPK_DEVICE float toFloat(bool value)
{
    return value ? 1.0f : 0.0f;
}
WPK_DEVICE float toFloat(Bfloat16 value)
{
    return asFloat(static_cast<uint32>(value.bits) << 16);
}

WPK_DEVICE float toFloat(Half value)
{
#if WPK_ON_GPU
    float result;
    asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(value.bits));
    return result;
#else
    _Float16 half;
    memcpy(&half, &value.bits, 2);
    return static_cast<float>(half);
#endif
}

namespace detail
{

// Truncates towards zero and saturates to [lowest, 2^power); a NaN gives 0.
template <class T>
WPK_DEVICE T truncateFloat(float value, float lowest, float power, T lowestValue, T highestValue)
{
    if (isNan(value))
        return T(0);
    if (value <= lowest)
        return lowestValue;
    if (value >= power)
        return highestValue;
    return static_cast<T>(value);
}

template <class T>
WPK_DEVICE T roundTo16Bits(float value)
{
    static_assert(isSame<T, Half> || isSame<T, Bfloat16>, "a storage type");
    T result;
#if WPK_ON_GPU
    if constexpr (isSame<T, Half>)
        asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result.bits) : "f"(value));
    else
        asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(result.bits) : "f"(value));
#else
    if constexpr (isSame<T, Half>)
    {
        const _Float16 half = static_cast<_Float16>(value);
        memcpy(&result.bits, &half, 2);
    }
    else
    {
        const uint32 bits = asUint32(value);
        const uint32 rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
        result.bits = static_cast<uint16>(isNan(value) ? 0x7fffu : rounded);
    }
#endif
    return result;
}

} // namespace detail

// Converts to storage type T. Floating types round to nearest, ties to even. Integers truncate
// towards zero and saturate (as ONNX Cast does within range; apply rintf first to round); NaN gives 0.
// bool is `value != 0`.
template <class T>
WPK_DEVICE T fromFloat(float value)
{
    if constexpr (isSame<T, float>)
        return value;
    else if constexpr (isSame<T, bool>)
        return value != 0.0f;
    else if constexpr (isSame<T, int8>)
        return detail::truncateFloat<T>(value, -128.0f, 128.0f, -128, 127);
    else if constexpr (isSame<T, uint8>)
        return detail::truncateFloat<T>(value, 0.0f, 256.0f, 0, 255);
    else if constexpr (isSame<T, int16>)
        return detail::truncateFloat<T>(value, -32768.0f, 32768.0f, -32768, 32767);
    else if constexpr (isSame<T, uint16>)
        return detail::truncateFloat<T>(value, 0.0f, 65536.0f, 0, 65535);
    else if constexpr (isSame<T, int32>)
        return detail::truncateFloat<T>(value, -2147483648.0f, 2147483648.0f, -2147483647 - 1, 2147483647);
    else if constexpr (isSame<T, uint32>)
        return detail::truncateFloat<T>(value, 0.0f, 4294967296.0f, 0u, 4294967295u);
    else if constexpr (isSame<T, uint64>)
        return detail::truncateFloat<T>(value, 0.0f, 18446744073709551616.0f, 0ull, 18446744073709551615ull);
    else if constexpr (isSame<T, int64>)
        return detail::truncateFloat<T>(
            value, -9223372036854775808.0f, 9223372036854775808.0f, -9223372036854775807ll - 1, 9223372036854775807ll);
    else
        return detail::roundTo16Bits<T>(value);
}

// Two values of a 16-bit type in one word, `low` in the low half.
template <class T>
WPK_DEVICE uint32 pack2(float low, float high)
{
#if WPK_ON_GPU
    uint32 word;
    if constexpr (isSame<T, Half>)
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
    else
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
    return word;
#else
    return fromFloat<T>(low).bits | static_cast<uint32>(fromFloat<T>(high).bits) << 16;
#endif
}

template <class T>
WPK_DEVICE float unpackLow(uint32 word)
{
    return toFloat(T{static_cast<uint16>(word)});
}

template <class T>
WPK_DEVICE float unpackHigh(uint32 word)
{
    return toFloat(T{static_cast<uint16>(word >> 16)});
}

// Rounds to tf32 (10 bits of mantissa; nearest, ties to even, away from zero before sm_90). The result is a float whose
// low 13 bits are zero, returned as the bits that an mma register holds; asFloat() reads it.
WPK_DEVICE uint32 roundToTf32(float value)
{
#if WPK_ON_GPU
    uint32 bits;
#if __CUDA_ARCH__ >= 900
    asm("cvt.rn.tf32.f32 %0, %1;" : "=r"(bits) : "f"(value)); // one instruction; .rna takes four there
#else
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(value));
#endif
    return bits;
#else
    const uint32 bits = asUint32(value);
    const bool finite = (bits & 0x7f800000u) != 0x7f800000u;
    return finite ? (bits + 0xfffu + (bits >> 13 & 1u)) & ~0x1fffu : bits;
#endif
}

} // namespace wpk
