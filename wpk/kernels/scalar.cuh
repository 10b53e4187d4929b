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

// Numbers of 8 bits (OCP 8-bit floating point, ONNX's FLOAT8E4M3FN and FLOAT8E5M2), storage only. E4M3 has no infinity,
// and one NaN of each sign; E5M2 is the upper half of binary16.
struct Float8E4m3
{
    uint8 bits;
};
struct Float8E5m2
{
    uint8 bits;
};

template <class T>
inline constexpr bool isFloat8 = isSame<T, Float8E4m3> || isSame<T, Float8E5m2>;

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

// Sign and magnitude of E4M3 are those of a binary16 that is 2^8 times smaller.
WPK_DEVICE float toFloat(Float8E4m3 value)
{
    const uint32 magnitude = value.bits & 0x7fu, sign = value.bits & 0x80u;
    const float number = 256.0f * toFloat(Half{static_cast<uint16>(sign << 8 | magnitude << 7)});
    return magnitude == 0x7fu ? asFloat(0x7fffffffu) : number;
}
WPK_DEVICE float toFloat(Float8E5m2 value)
{
    return toFloat(Half{static_cast<uint16>(value.bits << 8)});
}

namespace detail
{

// Rounds to 8 bits, to nearest, ties to even. What is beyond the largest number becomes infinity, or NaN in E4M3,
// which has none; NaN loses its sign.
template <class T>
WPK_DEVICE T roundTo8Bits(float value)
{
    constexpr bool isE4m3 = isSame<T, Float8E4m3>;
    constexpr uint32 mantissa = isE4m3 ? 3 : 2, bias = isE4m3 ? 7 : 15, largest = isE4m3 ? 0x7eu : 0x7bu;
    const uint32 bits = asUint32(value), magnitude = bits & 0x7fffffffu;
#if WPK_ON_GPU && __CUDA_ARCH__ >= 890
    // The largest numbers that still round to the largest of the type; the instruction saturates beyond.
    constexpr uint32 limit = isE4m3 ? 0x43e80000u : 0x476fffffu; // 464, a tie, and what is just below 61440, another
    uint16 pair;
    if constexpr (isE4m3)
        asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(value));
    else
        asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(value));
    const uint32 code = magnitude > limit ? largest + 1u : pair & 0x7fu;
#else
    constexpr uint32 shift = 23 - mantissa, least = (128 - bias) << 23; // of the smallest normal number
    uint32 code;
    if (magnitude < least)
    {
        // Subnormal numbers are so many of the smallest one; exactly, but for what rounds to none.
        const float smallest = asFloat((126 + bias + mantissa) << 23);
        code = static_cast<uint32>(rintf(asFloat(magnitude) * smallest));
    }
    else
    {
        const uint32 rounded = magnitude + ((1u << (shift - 1)) - 1u) + (magnitude >> shift & 1u);
        code = minOf((rounded >> shift) - ((127 - bias) << mantissa), largest + 1u);
    }
#endif
    if (magnitude > 0x7f800000u)
        return T{0x7f};
    return T{static_cast<uint8>(code | (bits >> 24 & 0x80u))};
}

// Truncates towards zero and saturates to [lowest, 2^power); a NaN gives 0. So does the instruction, without a branch.
template <class T>
WPK_DEVICE T truncateFloat(float value, float lowest, float power, T lowestValue, T highestValue)
{
#if WPK_ON_GPU
    if constexpr (sizeof(T) <= 4)
    {
        constexpr bool isSigned = static_cast<T>(-1) < T(0);
        uint32 word;
        uint16 half;
        if constexpr (sizeof(T) == 4 && isSigned)
            asm("cvt.rzi.s32.f32 %0, %1;" : "=r"(word) : "f"(value));
        else if constexpr (sizeof(T) == 4)
            asm("cvt.rzi.u32.f32 %0, %1;" : "=r"(word) : "f"(value));
        else if constexpr (sizeof(T) == 2 && isSigned)
            asm("cvt.rzi.s16.f32 %0, %1;" : "=h"(half) : "f"(value));
        else if constexpr (sizeof(T) == 2)
            asm("cvt.rzi.u16.f32 %0, %1;" : "=h"(half) : "f"(value));
        else if constexpr (isSigned)
            asm("cvt.rzi.s8.f32 %0, %1;" : "=h"(half) : "f"(value));
        else
            asm("cvt.rzi.u8.f32 %0, %1;" : "=h"(half) : "f"(value));
        if constexpr (sizeof(T) == 4)
            return static_cast<T>(word);
        else
            return static_cast<T>(half);
    }
#endif
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

// Converts to storage type T. Floating types round to nearest, ties to even; what is beyond the largest number becomes
// infinity, or NaN where there is none. Integers truncate
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
    else if constexpr (isFloat8<T>)
        return detail::roundTo8Bits<T>(value);
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
