// Scalar types as they lie in memory, and their conversions to and from the float or the double that kernels compute
// in.
#pragma once

#include <wpk/kernels/numbers/truncation.cuh>

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

// Of float and of integers. A double never becomes a float unnoticed: `toNumber<double>` reads it.
template <class T>
WPK_DEVICE float toFloat(T value)
{
    static_assert(!isSame<T, double>, "a double is computed with in double");
    return static_cast<float>(value);
}
WPK_DEVICE float toFloat(bool value)
{
    return value ? 1.0f : 0.0f;
}

// Bytes as the lowest bits of 2^23, which is then taken off: a conversion runs at a quarter of the rate.
WPK_DEVICE float toFloat(uint8 value)
{
    return asFloat(0x4b000000u | value) - 8388608.0f;
}
WPK_DEVICE float toFloat(int8 value)
{
    return asFloat(0x4b000000u | (static_cast<uint8>(value) ^ 0x80u)) - 8388736.0f;
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
#if WPK_ON_GPU && __CUDA_ARCH__ >= 890
    uint32 halves;
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"(static_cast<uint16>(value.bits)));
    return toFloat(Half{static_cast<uint16>(halves)});
#endif
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

// The same of two, the first in the low byte, that are NaN or round to no more than the largest number.
template <class T>
WPK_DEVICE uint16 pairTo8Bits(float first, float second)
{
#if WPK_ON_GPU && __CUDA_ARCH__ >= 890
    uint16 pair;
    if constexpr (isSame<T, Float8E4m3>)
        asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(second), "f"(first));
    else
        asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(second), "f"(first));
    return pair;
#else
    return static_cast<uint16>(roundTo8Bits<T>(first).bits | roundTo8Bits<T>(second).bits << 8);
#endif
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
    if constexpr (isSame<T, float> || isSame<T, double>)
        return value;
    else if constexpr (isSame<T, bool>)
        return value != 0.0f;
    else if constexpr (isInteger<T>)
        return detail::toInteger<T>(value);
    else if constexpr (isFloat8<T>)
        return detail::roundTo8Bits<T>(value);
    else
        return detail::roundTo16Bits<T>(value);
}

namespace detail
{

// Rounds to the neighbouring float whose last bit is set, unless a float is equal: what is rounded to fewer bits from
// there is rounded as if from the double (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
WPK_DEVICE float roundToOdd(double value)
{
    const float nearest = static_cast<float>(value);
    if (static_cast<double>(nearest) == value || isNan(value))
        return nearest;
    const uint32 magnitude = asUint32(nearest) & 0x7fffffffu;
    const bool away = static_cast<double>(asFloat(magnitude)) > fabs(value);
    return asFloat(((away ? magnitude - 1u : magnitude) | 1u) | (asUint64(value) >> 63 != 0 ? 0x80000000u : 0u));
}

} // namespace detail

// The same from double: every type is rounded to once.
template <class T>
WPK_DEVICE T fromDouble(double value)
{
    if constexpr (isSame<T, double> || isSame<T, float>)
        return static_cast<T>(value);
    else if constexpr (isSame<T, bool>)
        return value != 0.0;
    else if constexpr (isInteger<T>)
        return detail::toInteger<T>(value);
    else
        return fromFloat<T>(detail::roundToOdd(value));
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
