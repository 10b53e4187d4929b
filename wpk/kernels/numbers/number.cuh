// The numbers that kernels compute in: float, double, and integers of 64 bits, which wrap around.
//
// What fp32 cannot hold exactly is computed in double, or in int64 or uint64; a narrower type drops the bits above
// where a value is brought back into it. What C++ leaves open has a value here: divided by zero is 0, and shifts may be
// of any width.
#pragma once

#include <wpk/kernels/numbers/scalar.cuh>

namespace wpk
{

// An element as a number to compute with. Integers hold integers only.
template <class Number, class T>
WPK_DEVICE Number toNumber(T value)
{
    if constexpr (isSame<Number, float>)
    {
        return toFloat(value);
    }
    else if constexpr (isSame<Number, double>)
    {
        if constexpr (isSame<T, double> || isInteger<T>)
            return static_cast<double>(value);
        else
            return toFloat(value);
    }
    else
    {
        static_assert(isInteger<T>, "integers are computed from integers");
        return static_cast<Number>(value);
    }
}

// A number as an element of storage type T: float and double as `fromFloat` says, integers by their lowest bits.
template <class T, class Number>
WPK_DEVICE T fromNumber(Number value)
{
    if constexpr (isSame<Number, float>)
    {
        return fromFloat<T>(value);
    }
    else if constexpr (isSame<Number, double>)
    {
        return fromDouble<T>(value);
    }
    else if constexpr (isSame<T, bool>)
    {
        return value != Number(0);
    }
    else
    {
        static_assert(isInteger<T>, "integers are stored as integers");
        return static_cast<T>(value);
    }
}

template <class Number>
WPK_DEVICE Number larger(Number a, Number b)
{
    return a > b ? a : b;
}
template <class Number>
WPK_DEVICE Number smaller(Number a, Number b)
{
    return a < b ? a : b;
}

// Signed overflow is undefined in C++, so integers are added and multiplied without their sign.
WPK_DEVICE float sum(float a, float b)
{
    return a + b;
}
WPK_DEVICE double sum(double a, double b)
{
    return a + b;
}
WPK_DEVICE float difference(float a, float b)
{
    return a - b;
}
WPK_DEVICE double difference(double a, double b)
{
    return a - b;
}
WPK_DEVICE float product(float a, float b)
{
    return (a * b);
}
WPK_DEVICE double product(double a, double b)
{
    return a * b;
}
template <class Integer>
WPK_DEVICE Integer sum(Integer a, Integer b)
{
    return static_cast<Integer>(static_cast<uint64>(a) + static_cast<uint64>(b));
}
template <class Integer>
WPK_DEVICE Integer difference(Integer a, Integer b)
{
    return static_cast<Integer>(static_cast<uint64>(a) - static_cast<uint64>(b));
}
template <class Integer>
WPK_DEVICE Integer product(Integer a, Integer b)
{
    return static_cast<Integer>(static_cast<uint64>(a) * static_cast<uint64>(b));
}

WPK_DEVICE float negative(float a)
{
    return -a;
}
WPK_DEVICE double negative(double a)
{
    return -a;
}
template <class Integer>
WPK_DEVICE Integer negative(Integer a)
{
    return difference(Integer(0), a);
}

// Truncated towards zero. The least integer has no quotient by -1 but itself.
WPK_DEVICE float quotient(float a, float b)
{
    return a / b;
}
WPK_DEVICE double quotient(double a, double b)
{
    return a / b;
}
template <class Integer>
WPK_DEVICE Integer quotient(Integer a, Integer b)
{
    if (b == Integer(0))
        return Integer(0);
    return static_cast<Integer>(-1) < Integer(0) && b == static_cast<Integer>(-1) ? negative(a) : a / b;
}

// With the sign of the dividend.
WPK_DEVICE float remainder(float a, float b)
{
    return fmodf(a, b);
}
WPK_DEVICE double remainder(double a, double b)
{
    return fmod(a, b);
}
template <class Integer>
WPK_DEVICE Integer remainder(Integer a, Integer b)
{
    return b == Integer(0) ? Integer(0) : difference(a, product(quotient(a, b), b));
}

// With the sign of the divisor.
template <class Number>
WPK_DEVICE Number remainderOfFloor(Number a, Number b)
{
    const Number rest = remainder(a, b);
    return rest != Number(0) && (rest < Number(0)) != (b < Number(0)) ? sum(rest, b) : rest;
}

template <class Integer>
WPK_DEVICE bool isNan(Integer)
{
    return false;
}

// Functions of floating point, each as exact as its type.
#define WPK_FUNCTION(NAME, OF_FLOAT, OF_DOUBLE) \
    WPK_DEVICE float NAME(float a)              \
    {                                           \
        return OF_FLOAT(a);                     \
    }                                           \
    WPK_DEVICE double NAME(double a)            \
    {                                           \
        return OF_DOUBLE(a);                    \
    }

WPK_FUNCTION(exponential, expf, exp)
WPK_FUNCTION(logarithm, logf, log)
WPK_FUNCTION(logarithmOfOneAnd, log1pf, log1p)
WPK_FUNCTION(squareRoot, sqrtf, sqrt)
WPK_FUNCTION(hyperbolicTangent, tanhf, tanh)
WPK_FUNCTION(errorFunction, erff, erf)
WPK_FUNCTION(sine, sinf, sin)
WPK_FUNCTION(cosine, cosf, cos)
WPK_FUNCTION(tangent, tanf, tan)
WPK_FUNCTION(arcSine, asinf, asin)
WPK_FUNCTION(arcCosine, acosf, acos)
WPK_FUNCTION(arcTangent, atanf, atan)
WPK_FUNCTION(hyperbolicSine, sinhf, sinh)
WPK_FUNCTION(hyperbolicCosine, coshf, cosh)
WPK_FUNCTION(areaSine, asinhf, asinh)
WPK_FUNCTION(areaCosine, acoshf, acosh)
WPK_FUNCTION(areaTangent, atanhf, atanh)
WPK_FUNCTION(roundedDown, floorf, floor)
WPK_FUNCTION(roundedUp, ceilf, ceil)
WPK_FUNCTION(roundedToEven, rintf, rint)

#undef WPK_FUNCTION

// 1 / a within a unit in the last place, for what is no larger than 2^126 or infinite. A division that rounds correctly
// has a rare case that it calls a function for, and round that call the compiler keeps all other elements waiting.
WPK_DEVICE float reciprocal(float a)
{
#if WPK_ON_GPU
    float result;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(a));
    return result;
#else
    return 1.0f / a;
#endif
}
WPK_DEVICE double reciprocal(double a)
{
    return 1.0 / a;
}

// 1 / sqrt(a) within two units, for the same reason.
WPK_DEVICE float reciprocalRoot(float a)
{
#if WPK_ON_GPU
    return rsqrtf(a);
#else
    return 1.0f / sqrtf(a);
#endif
}
WPK_DEVICE double reciprocalRoot(double a)
{
    return 1.0 / sqrt(a);
}

// The larger of two; a number where the other is NaN.
WPK_DEVICE float largerNumber(float a, float b)
{
    return fmaxf(a, b);
}
WPK_DEVICE double largerNumber(double a, double b)
{
    return fmax(a, b);
}

WPK_DEVICE float multiplyAdd(float a, float b, float c)
{
    return fmaf(a, b, c);
}
WPK_DEVICE double multiplyAdd(double a, double b, double c)
{
    return fma(a, b, c);
}

WPK_DEVICE float magnitude(float a)
{
    return fabsf(a);
}
WPK_DEVICE double magnitude(double a)
{
    return fabs(a);
}
template <class Integer>
WPK_DEVICE Integer magnitude(Integer a)
{
    return a < Integer(0) ? negative(a) : a;
}

WPK_DEVICE float power(float a, float b)
{
    return powf(a, b);
}
WPK_DEVICE double power(double a, double b)
{
    return pow(a, b);
}
// By squaring; a power below 0 is truncated, so that it is 0 unless the base is 1 or -1.
template <class Integer>
WPK_DEVICE Integer power(Integer base, Integer exponent)
{
    if (exponent < Integer(0))
    {
        if (base == static_cast<Integer>(-1))
            return (exponent & Integer(1)) != Integer(0) ? base : Integer(1);
        return base == Integer(1) ? base : Integer(0);
    }
    Integer result(1);
    for (uint64 left = static_cast<uint64>(exponent); left != 0; left >>= 1)
    {
        if (left & 1)
            result = product(result, base);
        base = product(base, base);
    }
    return result;
}

// Shifts by less than nothing or by 64 and more leave no bit; to the right they leave the sign.
template <class Integer>
WPK_DEVICE Integer shiftedLeft(Integer a, Integer by)
{
    return static_cast<uint64>(by) >= 64 ? Integer(0) : static_cast<Integer>(static_cast<uint64>(a) << by);
}
template <class Integer>
WPK_DEVICE Integer shiftedRight(Integer a, Integer by)
{
    if (static_cast<uint64>(by) >= 64)
        return a < Integer(0) ? static_cast<Integer>(-1) : Integer(0);
    return a >> by;
}

} // namespace wpk
