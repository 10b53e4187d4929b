// 1 + erf and 1 + tanh, as they stand in GELUs that are not the whole one (gelu.cuh): what is added to 1 need not be
// exact by itself.
#pragma once

#include <wpk/kernels/numbers/near_exponential.cuh>
#include <wpk/kernels/numbers/number.cuh>

namespace wpk
{

// 1 + erf(a) to 1.3e-7: 12 instructions, of which 1 + erff(a) takes 22.
WPK_DEVICE float onePlusErrorFunction(float a)
{
    // log2(1 - erf(x)) / x of x >= 0: what it leaves counts as much as 1 - erf(x) is large, 1.6e-8 at most. Its first
    // coefficient is negative, so that beyond the fit, which ends at 4, the power vanishes.
    const float x = fabsf(a);
    float slope = -4.535860352916643e-05f;
    slope = fmaf(slope, x, 4.4550769962370396e-04f);
    slope = fmaf(slope, x, -1.4894419582560658e-03f);
    slope = fmaf(slope, x, -7.746291230432689e-04f);
    slope = fmaf(slope, x, 2.825368009507656e-02f);
    slope = fmaf(slope, x, -1.484816074371338e-01f);
    slope = fmaf(slope, x, -9.184163808822632e-01f);
    slope = fmaf(slope, x, -1.6279085874557495f);
    const float rest = nearPowerOfTwo(slope * x);
    return a < 0.0f ? rest : 2.0f - rest;
}
WPK_DEVICE double onePlusErrorFunction(double a)
{
    return 1.0 + erf(a);
}

// 1 + tanh(a), to 2.5e-7.
WPK_DEVICE float onePlusHyperbolicTangent(float a)
{
    return 2.0f * reciprocal(1.0f + nearPowerOfTwo(a * -2.88539008f));
}
WPK_DEVICE double onePlusHyperbolicTangent(double a)
{
    return 1.0 + tanh(a);
}

// Of expression.cuh.
template <uint32 Bits>
struct Scalar;
template <class A, class B>
struct Add;
template <class A>
struct Erf;
template <class A>
struct Tanh;

template <class A>
struct Add<Scalar<0x3f800000u>, Erf<A>>
{
    template <class Number, class Operands>
    static WPK_DEVICE Number evaluate(Number acc, const Operands& operands)
    {
        return onePlusErrorFunction(A::evaluate(acc, operands));
    }
};
template <class A>
struct Add<Scalar<0x3f800000u>, Tanh<A>>
{
    template <class Number, class Operands>
    static WPK_DEVICE Number evaluate(Number acc, const Operands& operands)
    {
        return onePlusHyperbolicTangent(A::evaluate(acc, operands));
    }
};

} // namespace wpk
