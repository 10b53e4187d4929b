// What an index outside of its axis reads.
#pragma once

#include <wpk/kernels/operands/tensor.cuh>

namespace wpk
{

// A value that a check cannot miss: NaN, or 0 for integers.
template <class T>
WPK_DEVICE T outsideValue()
{
    if constexpr (isInteger<T>)
    {
        return T{};
    }
    else
    {
        return fromFloat<T>(asFloat(0x7fc00000u));
    }
}

} // namespace wpk
