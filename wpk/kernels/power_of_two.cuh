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

} // namespace wpk
