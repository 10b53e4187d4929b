// The expressions of wpk/expression.py as C++ types, evaluated in fp32.
//
//   using Tail = Relu<Add<Acc, Operand<0>>>;
//   y = Tail::evaluate(accumulator, operands);     // operands[i] is the float that Operand<i> stands for
//
// Every type has `evaluate(float acc, const Operands& operands)`; `operands` is anything indexed by a
// constant, usually a local array of floats. Booleans are 0 and 1. Max, Min and Relu hand a NaN on, as ONNX
// and NumPy do.
#pragma once

#include <wpk/kernels/scalar.cuh>

namespace wpk
{

// What the kernel computed for this element.
struct Acc
{
    template <class Operands>
    static WPK_DEVICE float evaluate(float acc, const Operands&)
    {
        return acc;
    }
};

// The element of the problem's operand I at this position.
template <int I>
struct Operand
{
    template <class Operands>
    static WPK_DEVICE float evaluate(float, const Operands& operands)
    {
        return operands[I];
    }
};

// An fp32 constant, by its bits.
template <uint32 Bits>
struct Scalar
{
    template <class Operands>
    static WPK_DEVICE float evaluate(float, const Operands&)
    {
        return asFloat(Bits);
    }
};

// The argument as it would come back from memory of type T.
template <class T, class Argument>
struct Round
{
    template <class Operands>
    static WPK_DEVICE float evaluate(float acc, const Operands& operands)
    {
        return toFloat(fromFloat<T>(Argument::evaluate(acc, operands)));
    }
};

#define WPK_UNARY_OPERATION(NAME, FORMULA)                                    \
    template <class A>                                                        \
    struct NAME                                                               \
    {                                                                         \
        template <class Operands>                                             \
        static WPK_DEVICE float evaluate(float acc, const Operands& operands) \
        {                                                                     \
            const float a = A::evaluate(acc, operands);                       \
            return FORMULA;                                                   \
        }                                                                     \
    }

#define WPK_BINARY_OPERATION(NAME, FORMULA)                                   \
    template <class A, class B>                                               \
    struct NAME                                                               \
    {                                                                         \
        template <class Operands>                                             \
        static WPK_DEVICE float evaluate(float acc, const Operands& operands) \
        {                                                                     \
            const float a = A::evaluate(acc, operands);                       \
            const float b = B::evaluate(acc, operands);                       \
            return FORMULA;                                                   \
        }                                                                     \
    }

WPK_BINARY_OPERATION(Add, a + b);
WPK_BINARY_OPERATION(Sub, a - b);
WPK_BINARY_OPERATION(Mul, (a * b));
WPK_BINARY_OPERATION(Div, a / b);
WPK_BINARY_OPERATION(Max, larger(a, b));
WPK_BINARY_OPERATION(Min, smaller(a, b));
WPK_BINARY_OPERATION(Pow, powf(a, b));
WPK_BINARY_OPERATION(Mod, fmodf(a, b));

WPK_UNARY_OPERATION(Neg, -a);
WPK_UNARY_OPERATION(Abs, fabsf(a));
WPK_UNARY_OPERATION(Exp, expf(a));
WPK_UNARY_OPERATION(Log, logf(a));
WPK_UNARY_OPERATION(Sqrt, sqrtf(a));
WPK_UNARY_OPERATION(Reciprocal, 1.0f / a);
WPK_UNARY_OPERATION(Tanh, tanhf(a));
WPK_UNARY_OPERATION(Sigmoid, 1.0f / (1.0f + expf(-a)));
WPK_UNARY_OPERATION(Erf, erff(a));
WPK_UNARY_OPERATION(Sin, sinf(a));
WPK_UNARY_OPERATION(Cos, cosf(a));
WPK_UNARY_OPERATION(Tan, tanf(a));
WPK_UNARY_OPERATION(Asin, asinf(a));
WPK_UNARY_OPERATION(Acos, acosf(a));
WPK_UNARY_OPERATION(Atan, atanf(a));
WPK_UNARY_OPERATION(Sinh, sinhf(a));
WPK_UNARY_OPERATION(Cosh, coshf(a));
WPK_UNARY_OPERATION(Asinh, asinhf(a));
WPK_UNARY_OPERATION(Acosh, acoshf(a));
WPK_UNARY_OPERATION(Atanh, atanhf(a));
WPK_UNARY_OPERATION(Floor, floorf(a));
WPK_UNARY_OPERATION(Ceil, ceilf(a));
WPK_UNARY_OPERATION(RoundEven, rintf(a));
WPK_UNARY_OPERATION(Sign, a > 0.0f ? 1.0f : (a < 0.0f ? -1.0f : a));
WPK_UNARY_OPERATION(Relu, larger(a, 0.0f));
// log(1 + e^a) without overflow.
WPK_UNARY_OPERATION(Softplus, fmaxf(a, 0.0f) + log1pf(expf(-fabsf(a))));
WPK_UNARY_OPERATION(IsNan, isNan(a) ? 1.0f : 0.0f);
WPK_UNARY_OPERATION(Not, a == 0.0f ? 1.0f : 0.0f);

WPK_BINARY_OPERATION(Less, a < b ? 1.0f : 0.0f);
WPK_BINARY_OPERATION(LessOrEqual, a <= b ? 1.0f : 0.0f);
WPK_BINARY_OPERATION(Equal, a == b ? 1.0f : 0.0f);
WPK_BINARY_OPERATION(And, (a != 0.0f && b != 0.0f) ? 1.0f : 0.0f);
WPK_BINARY_OPERATION(Or, (a != 0.0f || b != 0.0f) ? 1.0f : 0.0f);

// `condition` != 0 ? a : b.
template <class Condition, class A, class B>
struct Where
{
    template <class Operands>
    static WPK_DEVICE float evaluate(float acc, const Operands& operands)
    {
        const float a = A::evaluate(acc, operands);
        const float b = B::evaluate(acc, operands);
        return Condition::evaluate(acc, operands) != 0.0f ? a : b;
    }
};

#undef WPK_UNARY_OPERATION
#undef WPK_BINARY_OPERATION

} // namespace wpk
