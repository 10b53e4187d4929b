// Divides by constants: for divisor number d of n elements each, what expressions with a constant divisor give.
#include <wpk/kernels/numbers/expression.cuh>

namespace
{

using namespace wpk;

template <uint32 Bits>
WPK_DEVICE void divide(int number, const float* x, float* quotients, float* integers, int n)
{
    using Divided = Div<Acc, Scalar<Bits>>;
    const float none[1] = {};
    for (int i = threadIdx.x; i < n; i += blockDim.x)
    {
        quotients[number * n + i] = Divided::evaluate(x[i], none);
        integers[number * n + i] = RoundEven<Divided>::evaluate(x[i], none);
    }
}

} // namespace

WPK_KERNEL(64) divide_by_constants(const float* x, float* quotients, float* integers, int n)
{
    divide<0x3d8ea000u>(0, x, quotients, integers, n);
    divide<0x3f800000u>(1, x, quotients, integers, n);
    divide<0x40400000u>(2, x, quotients, integers, n);
    divide<0xbc7fffffu>(3, x, quotients, integers, n);
    divide<0x3ddab4b6u>(4, x, quotients, integers, n);
    divide<0x1fffffffu>(5, x, quotients, integers, n);
    divide<0x5f800001u>(6, x, quotients, integers, n);
    divide<0x00000001u>(7, x, quotients, integers, n);
    divide<0x7f7fffffu>(8, x, quotients, integers, n);
    divide<0xff800000u>(9, x, quotients, integers, n);
    divide<0x80000000u>(10, x, quotients, integers, n);
    divide<0x7fc00000u>(11, x, quotients, integers, n);
}
WPK_EXPORT(divide_by_constants)

// The same by arguments: of each divisor the divisor, and the reciprocal of its double.
WPK_KERNEL(64) divide_by_arguments(const float* x, const float* d, float* quotients, float* integers, int n, int count)
{
    using Divided = Div<Acc, Divisor<0>>;
    for (int i = threadIdx.x; i < n * count; i += blockDim.x)
    {
        const float* const divisor = d + i / n * 2;
        quotients[i] = Divided::evaluate(x[i % n], divisor);
        integers[i] = RoundEven<Divided>::evaluate(x[i % n], divisor);
    }
}
WPK_EXPORT(divide_by_arguments)
