// Correctly rounded division by a constant or an argument, without the branches of a division.
//
// A division on a GPU takes a slow path for every dividend of 0, which quantised numbers are full of. By a divisor
// that is known, its rounded reciprocal takes its place: a product is off by at most two units in the last place,
// what remains of the dividend is exact by a fused multiply-add, and of two corrections by it the first makes the
// quotient one of the two floats that are next to the true one, the second the correctly rounded one (Markstein 1990,
// theorem 8.3 and its corollary; Muller et al., Handbook of Floating-Point Arithmetic, 2nd edition, section 4.7).
// All of it is done with halves, so that nothing overflows but what the quotient itself does.
#pragma once

#include <wpk/kernels/numbers/number.cuh>

namespace wpk
{
namespace detail
{

// a / d for a = 0, infinity, NaN and |a| >= 2^-60. For smaller ones it is near enough to round to 0. `reciprocal` is
// 1 / (2 d), rounded once.
WPK_DEVICE float quotientByReciprocal(float a, float d, float reciprocal)
{
    const float twice = 2.0f * d;
    const float product = a * reciprocal;
    const float rest = fmaf(-product, twice, a);
    const float near = fmaf(rest, reciprocal, product);
    const float exact = fmaf(fmaf(-near, twice, a), reciprocal, near);
    const float size = fabsf(rest);
    // Nothing rests of a zero, whose sign stays; of an infinity, a NaN.
    const float half = size > 0.0f && size < asFloat(0x7f800000u) ? exact : product;
    return half + half;
}

} // namespace detail

// Whether the reciprocal of the float of these bits, and the corrections by it, neither overflow nor underflow.
WPK_DEVICE constexpr bool isOrdinaryDivisor(uint32 bits)
{
    return (bits >> 23 & 0xffu) >= 63u && (bits >> 23 & 0xffu) <= 191u;
}

// a / d, of an ordinary divisor that is the same at every element; `reciprocal` is 1 / (2 d), rounded once.
WPK_DEVICE float quotientBy(float a, float d, float reciprocal)
{
    const bool isTiny = fabsf(a) < 0x1p-60f && a != 0.0f;
    return isTiny ? a / d : detail::quotientByReciprocal(a, d, reciprocal);
}

// The same, rounded to the nearest integer, ties to even.
WPK_DEVICE float integerQuotientBy(float a, float d, float reciprocal)
{
    return rintf(detail::quotientByReciprocal(a, d, reciprocal));
}

} // namespace wpk
