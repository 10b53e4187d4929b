// Elements in the type that they are computed in: floating point in float or double, integers as they are.
#pragma once

#include <wpk/kernels/numbers/scalar.cuh>

namespace wpk
{

template <class T>
WPK_DEVICE auto widened(T value)
{
    if constexpr (isSame<T, float> || isSame<T, Half> || isSame<T, Bfloat16>)
        return toFloat(value);
    else
        return value;
}

// Back to the type in memory; integers keep their lowest bits.
template <class T, class Value>
WPK_DEVICE T narrowed(Value value)
{
    if constexpr (isSame<T, float> || isSame<T, Half> || isSame<T, Bfloat16>)
        return fromFloat<T>(value);
    else
        return static_cast<T>(value);
}

} // namespace wpk
