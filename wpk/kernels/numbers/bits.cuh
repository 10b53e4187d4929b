// The bits of floating point numbers, and the order that hands a NaN on.
#pragma once

#include <wpk/kernels/portable.cuh>

namespace wpk
{

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

WPK_DEVICE double asDouble(uint64 bits)
{
    double value;
    memcpy(&value, &bits, 8);
    return value;
}

WPK_DEVICE uint64 asUint64(double value)
{
    uint64 bits;
    memcpy(&bits, &value, 8);
    return bits;
}

WPK_DEVICE bool isNan(float value)
{
    return (asUint32(value) & 0x7fffffffu) > 0x7f800000u;
}
WPK_DEVICE bool isNan(double value)
{
    return (asUint64(value) & 0x7fffffffffffffffull) > 0x7ff0000000000000ull;
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

WPK_DEVICE double larger(double a, double b)
{
    return a > b || isNan(a) ? a : b;
}
WPK_DEVICE double smaller(double a, double b)
{
    return a < b || isNan(a) ? a : b;
}

} // namespace wpk
