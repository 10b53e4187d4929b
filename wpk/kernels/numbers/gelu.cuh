// GELU (Hendrycks and Gimpel, arXiv 1606.08415): x Phi(x), with Phi the normal distribution, and its form by tanh. The
// types that stand for them (wpk/operators/functions.py) are computed as one function each.
#pragma once

#include <wpk/kernels/numbers/near_exponential.cuh>
#include <wpk/kernels/numbers/number.cuh>

namespace wpk
{

// x Phi(x) to 1.4e-7 |x| and, as everything, 2^-24 of itself; 2^-23 |x| more where the unit's power is off by so much:
// 11 instructions, one of them of the special function unit. Phi(-x) is 1 - Phi(x), so it is max(x, 0) - |x| Phi(-|x|),
// in which nothing is chosen. A check allows the function itself four times as much (wpk/operators/formulas.py).
WPK_DEVICE float gelu(float x)
{
    // log2(2 Phi(-2 a)) / a from 0 to 2.75, of which 1.2e-7 of Phi is left. Beyond, the power keeps vanishing up to
    // where `a` ends, with which it is 0; without an end it would be 0 times infinity.
    const float half = 0.5f * x, a = fminf(fabsf(half), 8.0f); // @gelu_ends
    float slope = 1.1363264079e-03f;
    slope = fmaf(slope, a, -2.0728229409e-02f);
    slope = fmaf(slope, a, 1.2358466887e-01f);
    slope = fmaf(slope, a, -4.2341388861e-01f);
    slope = fmaf(slope, a, -1.8363309506e+00f);
    slope = fmaf(slope, a, -2.3022337121e+00f); // @gelu_slope
    // No number where x is none or is -infinity, of which the formula is 0 times infinity.
    const float positive = half + fabsf(half);
    return fmaf(-a, nearPowerOfTwo(slope * a), positive);
}

// x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2, to 1.5e-7 |x| and 2^-24 |x| more: x / (1 + 2^w) in seven
// instructions, two of them of the special function unit.
WPK_DEVICE float geluByTanh(float x)
{
    const float w = x * fmaf(x * x, -1.0294324e-01f, -2.3022082f); // @gelu_by_tanh
    return x * reciprocal(1.0f + nearPowerOfTwo(w));
}

// Of expression.cuh.
template <uint32 Bits>
struct Scalar;
template <class A, class B>
struct Add;
template <class A, class B>
struct Mul;
template <class A>
struct Erf;
template <class A>
struct Tanh;

namespace detail
{
template <class X>
using RootOfHalf = Mul<X, Scalar<0x3f3504f3u>>;
template <class X>
using Cube = Mul<X, Mul<X, X>>;
template <class X>
using BellArgument = Mul<Scalar<0x3f4c422au>, Add<X, Mul<Scalar<0x3d372713u>, Cube<X>>>>;
} // namespace detail

template <class X>
struct Mul<Mul<Scalar<0x3f000000u>, X>, Add<Scalar<0x3f800000u>, Erf<detail::RootOfHalf<X>>>>
{
    template <class Operands>
    static WPK_DEVICE float evaluate(float acc, const Operands& operands)
    {
        return gelu(X::evaluate(acc, operands));
    }
};
template <class X>
struct Mul<Mul<Scalar<0x3f000000u>, X>, Add<Scalar<0x3f800000u>, Tanh<detail::BellArgument<X>>>>
{
    template <class Operands>
    static WPK_DEVICE float evaluate(float acc, const Operands& operands)
    {
        return geluByTanh(X::evaluate(acc, operands));
    }
};

} // namespace wpk
