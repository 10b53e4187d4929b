// The exponential by the unit that gives powers of two, where what comes of it is rounded to fewer bits than fp32 has.
//
// expf takes nine instructions, of which one is that unit's: the others are for the last bits. Attention issues more of
// them than of anything else, products included.
#pragma once

#include <wpk/kernels/portable.cuh>

namespace wpk
{

// 2^a, to 2^-22 of it; 0 for what is below the smallest normal number.
WPK_DEVICE float nearPowerOfTwo(float a)
{
#if WPK_ON_GPU
    float result;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(a));
    return result;
#else
    const float result = exp2f(a);
    return result < 0x1p-126f ? 0.0f : result;
#endif
}

// exp(a) for a <= 0, NaN for NaN. Its relative error is below 2^-22 + |a| 2^-22: that of the unit (PTX ISA,
// ex2.approx), and what rounding a log2(e) moves it by. What is below the smallest normal number is 0.
WPK_DEVICE float nearExponential(float a)
{
    const float power = a * 1.4426950408889634f; // @to_powers_of_two
    return nearPowerOfTwo(power);
}

// exp(a) for a <= 0, in all bits of fp32 where it has to be Exact.
template <bool Exact>
WPK_DEVICE float weightOf(float a)
{
    if constexpr (Exact)
        return expf(a);
    else
        return nearExponential(a);
}

} // namespace wpk
