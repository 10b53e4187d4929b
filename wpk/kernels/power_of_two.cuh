// Powers of two as the GPU's special function units have them, for results that are rounded, or added to 1, then.
#pragma once

#include <wpk/kernels/portable.cuh>

namespace wpk
{

// 2^a, to 2^-22 of it; 0 instead of numbers below the least normal one.
WPK_DEVICE float approximatePowerOfTwo(float a)
{
#if WPK_ON_GPU
    float result;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(a));
    return result;
#else
    return exp2f(a);
#endif
}

// e^a of a difference of scores in a softmax, which is not positive: as exact as fp32, or as weights need it that are
// rounded to 11 bits or fewer then. expf takes seven instructions more.
template <bool Exact>
WPK_DEVICE float softmaxExponential(float a)
{
    return Exact ? expf(a) : approximatePowerOfTwo(a * 1.44269504f);
}

} // namespace wpk
