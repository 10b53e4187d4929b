// Floating point numbers as integers.
#pragma once

#include <wpk/kernels/numbers/bits.cuh>

namespace wpk
{

template <class T>
inline constexpr bool isInteger =
    isSame<T, int8> || isSame<T, uint8> || isSame<T, int16> || isSame<T, uint16> || isSame<T, int32>
    || isSame<T, uint32> || isSame<T, int64> || isSame<T, uint64> || isSame<T, bool>;

namespace detail
{

// Truncates towards zero and saturates to [lowest, 2^power); a NaN gives 0. So does the instruction, without a branch.
template <class T, class Number>
WPK_DEVICE T truncate(Number value, Number lowest, Number power, T lowestValue, T highestValue)
{
#if WPK_ON_GPU
    if constexpr (sizeof(T) <= 4 && isSame<Number, float>)
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

// An integer of a float or a double.
template <class T, class Number>
WPK_DEVICE T toInteger(Number value)
{
    if constexpr (isSame<T, int8>)
        return truncate<T, Number>(value, Number(-128.0), Number(128.0), -128, 127);
    else if constexpr (isSame<T, uint8>)
        return truncate<T, Number>(value, Number(0.0), Number(256.0), 0, 255);
    else if constexpr (isSame<T, int16>)
        return truncate<T, Number>(value, Number(-32768.0), Number(32768.0), -32768, 32767);
    else if constexpr (isSame<T, uint16>)
        return truncate<T, Number>(value, Number(0.0), Number(65536.0), 0, 65535);
    else if constexpr (isSame<T, int32>)
        return truncate<T, Number>(value, Number(-2147483648.0), Number(2147483648.0), -2147483647 - 1, 2147483647);
    else if constexpr (isSame<T, uint32>)
        return truncate<T, Number>(value, Number(0.0), Number(4294967296.0), 0u, 4294967295u);
    else if constexpr (isSame<T, uint64>)
        return truncate<T, Number>(value, Number(0.0), Number(18446744073709551616.0), 0ull, 18446744073709551615ull);
    else
        return truncate<T, Number>(value, Number(-9223372036854775808.0), Number(9223372036854775808.0),
            -9223372036854775807ll - 1, 9223372036854775807ll);
}

} // namespace detail

} // namespace wpk
