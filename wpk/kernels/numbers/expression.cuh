// The expressions of wpk/expression.py as C++ types, evaluated in fp32, or in the numbers that `In` names: double, or
// integers of 64 bits.
//
//   using Tail = Relu<Add<Acc, Operand<0>>>;
//   y = Tail::evaluate(accumulator, operands);     // operands[i] is the float that Operand<i> stands for
//
// Every type has `evaluate(Number acc, const Operands& operands)`; `operands` is anything indexed by a
// constant, usually a local array of such numbers. Booleans are 0 and 1. Max, Min and Relu hand a NaN on, as ONNX
// and NumPy do.
#pragma once

#include <wpk/kernels/numbers/gelu.cuh>
#include <wpk/kernels/numbers/number.cuh>
#include <wpk/kernels/numbers/one_plus.cuh>
#include <wpk/kernels/numbers/quantised.cuh>
#include <wpk/kernels/numbers/quotient.cuh>

namespace wpk
{

// What the kernel computed for this element.
struct Acc
{
    template <class Number, class Operands>
    static WPK_DEVICE Number evaluate(Number acc, const Operands&)
    {
        return acc;
    }
};

// The element of the problem's operand I at this position.
template <int I>
struct Operand
{
    template <class Number, class Operands>
    static WPK_DEVICE Number evaluate(Number, const Operands& operands)
    {
        return operands[I];
    }
};

// The same of an ordinary divisor (quotient.cuh); operand I + 1 is the reciprocal of its double, rounded once.
template <int I>
struct Divisor : Operand<I>
{
};

// The argument quantised to T, as it would come back from memory (quantised.cuh). Its numbers are operands I and
// following.
template <class T, class Argument, int I, bool Moved, bool Guarded>
struct Quantised
{
    using Form = QuantisedNumber<T, Moved, Guarded>;

    // On its way to memory.
    template <class Operands>
    static WPK_DEVICE float number(float acc, const Operands& operands)
    {
        const auto numberAt = [&operands](int which)
        {
            return operands[I + which];
        };
        return Form::of(Argument::evaluate(acc, operands), numberAt);
    }

    template <class Operands>
    static WPK_DEVICE float evaluate(float acc, const Operands& operands)
    {
        return Form::restored(number(acc, operands));
    }
};

// An fp32 constant, by its bits.
template <uint32 Bits>
struct Scalar
{
    template <class Number, class Operands>
    static WPK_DEVICE Number evaluate(Number, const Operands&)
    {
        return static_cast<Number>(asFloat(Bits));
    }
};

// An fp64 constant, by its bits.
template <uint64 Bits>
struct DoubleScalar
{
    template <class Number, class Operands>
    static WPK_DEVICE Number evaluate(Number, const Operands&)
    {
        static_assert(isSame<Number, double>, "a constant of double is one of what is computed in double");
        return asDouble(Bits);
    }
};

// The argument as it would come back from memory of type T.
template <class T, class Argument>
struct Round
{
    template <class Number, class Operands>
    static WPK_DEVICE Number evaluate(Number acc, const Operands& operands)
    {
        return toNumber<Number>(fromNumber<T>(Argument::evaluate(acc, operands)));
    }
};

// The argument, evaluated in numbers of another type than float: the whole of an expression.
template <class T, class Argument>
struct In
{
    template <class Operands>
    static WPK_DEVICE T evaluate(T acc, const Operands& operands)
    {
        return Argument::evaluate(acc, operands);
    }
};

namespace detail
{
template <class Expression>
struct Numbers
{
    using Type = float;
};
template <class T, class Argument>
struct Numbers<In<T, Argument>>
{
    using Type = T;
};
} // namespace detail

// The type of number that an expression is evaluated in.
template <class Expression>
using NumberOf = typename detail::Numbers<Expression>::Type;

// What is stored of an expression in type T: numbers on their way, of which 0 is stored as 0, and rows of them.
template <class T, class Expression>
struct Result
{
    using Number = NumberOf<Expression>;

    template <class Operands>
    static WPK_DEVICE Number number(Number acc, const Operands& operands)
    {
        return Expression::evaluate(acc, operands);
    }

    template <int N>
    static WPK_DEVICE void store(const Number (&numbers)[N], T (&row)[N])
    {
        WPK_UNROLL
        for (int i = 0; i < N; ++i)
            row[i] = fromNumber<T>(numbers[i]);
    }
};
template <class T, class Argument, int I, bool Moved, bool Guarded>
struct Result<T, Quantised<T, Argument, I, Moved, Guarded>> : Quantised<T, Argument, I, Moved, Guarded>
{
    template <int N>
    static WPK_DEVICE void store(const float (&numbers)[N], T (&row)[N])
    {
        QuantisedNumber<T, Moved, Guarded>::store(numbers, row);
    }
};

#define WPK_UNARY_OPERATION(NAME, FORMULA)                                      \
    template <class A>                                                          \
    struct NAME                                                                 \
    {                                                                           \
        template <class Number, class Operands>                                 \
        static WPK_DEVICE Number evaluate(Number acc, const Operands& operands) \
        {                                                                       \
            const Number a = A::evaluate(acc, operands);                        \
            return FORMULA;                                                     \
        }                                                                       \
    }

#define WPK_BINARY_OPERATION(NAME, FORMULA)                                     \
    template <class A, class B>                                                 \
    struct NAME                                                                 \
    {                                                                           \
        template <class Number, class Operands>                                 \
        static WPK_DEVICE Number evaluate(Number acc, const Operands& operands) \
        {                                                                       \
            const Number a = A::evaluate(acc, operands);                        \
            const Number b = B::evaluate(acc, operands);                        \
            return FORMULA;                                                     \
        }                                                                       \
    }

WPK_BINARY_OPERATION(Add, sum(a, b));
WPK_BINARY_OPERATION(Sub, difference(a, b));
WPK_BINARY_OPERATION(Mul, product(a, b));
WPK_BINARY_OPERATION(Div, quotient(a, b));
WPK_BINARY_OPERATION(Max, larger(a, b));
WPK_BINARY_OPERATION(Min, smaller(a, b));
WPK_BINARY_OPERATION(Pow, power(a, b));
WPK_BINARY_OPERATION(Mod, remainder(a, b));
WPK_BINARY_OPERATION(FloorMod, remainderOfFloor(a, b));

WPK_UNARY_OPERATION(Neg, negative(a));
WPK_UNARY_OPERATION(Abs, magnitude(a));
WPK_UNARY_OPERATION(Exp, exponential(a));
WPK_UNARY_OPERATION(Log, logarithm(a));
WPK_UNARY_OPERATION(Sqrt, squareRoot(a));
WPK_UNARY_OPERATION(Reciprocal, Number(1) / a);
WPK_UNARY_OPERATION(Tanh, hyperbolicTangent(a));
WPK_UNARY_OPERATION(Sigmoid, reciprocal(Number(1) + exponential(-a)));
WPK_UNARY_OPERATION(Erf, errorFunction(a));
WPK_UNARY_OPERATION(Sin, sine(a));
WPK_UNARY_OPERATION(Cos, cosine(a));
WPK_UNARY_OPERATION(Tan, tangent(a));
WPK_UNARY_OPERATION(Asin, arcSine(a));
WPK_UNARY_OPERATION(Acos, arcCosine(a));
WPK_UNARY_OPERATION(Atan, arcTangent(a));
WPK_UNARY_OPERATION(Sinh, hyperbolicSine(a));
WPK_UNARY_OPERATION(Cosh, hyperbolicCosine(a));
WPK_UNARY_OPERATION(Asinh, areaSine(a));
WPK_UNARY_OPERATION(Acosh, areaCosine(a));
WPK_UNARY_OPERATION(Atanh, areaTangent(a));
WPK_UNARY_OPERATION(Floor, roundedDown(a));
WPK_UNARY_OPERATION(Ceil, roundedUp(a));
WPK_UNARY_OPERATION(RoundEven, roundedToEven(a));
WPK_UNARY_OPERATION(Sign, a > Number(0) ? Number(1) : (a < Number(0) ? Number(-1) : a));
WPK_UNARY_OPERATION(Relu, larger(a, Number(0)));
// log(1 + e^a) without overflow.
WPK_UNARY_OPERATION(Softplus, (a > Number(0) ? a : Number(0)) + logarithmOfOneAnd(exponential(-magnitude(a))));
WPK_UNARY_OPERATION(IsNan, isNan(a) ? Number(1) : Number(0));
WPK_UNARY_OPERATION(Not, a == Number(0) ? Number(1) : Number(0));

WPK_BINARY_OPERATION(Less, a < b ? Number(1) : Number(0));
WPK_BINARY_OPERATION(LessOrEqual, a <= b ? Number(1) : Number(0));
WPK_BINARY_OPERATION(Equal, a == b ? Number(1) : Number(0));
WPK_BINARY_OPERATION(And, (a != Number(0) && b != Number(0)) ? Number(1) : Number(0));
WPK_BINARY_OPERATION(Or, (a != Number(0) || b != Number(0)) ? Number(1) : Number(0));

// Of integers.
WPK_BINARY_OPERATION(BitAnd, a& b);
WPK_BINARY_OPERATION(BitOr, a | b);
WPK_BINARY_OPERATION(BitXor, a ^ b);
WPK_UNARY_OPERATION(BitNot, ~a);
WPK_BINARY_OPERATION(ShiftLeft, shiftedLeft(a, b));
WPK_BINARY_OPERATION(ShiftRight, shiftedRight(a, b));

// `condition` != 0 ? a : b.
template <class Condition, class A, class B>
struct Where
{
    template <class Number, class Operands>
    static WPK_DEVICE Number evaluate(Number acc, const Operands& operands)
    {
        const Number a = A::evaluate(acc, operands);
        const Number b = B::evaluate(acc, operands);
        return Condition::evaluate(acc, operands) != Number(0) ? a : b;
    }
};

// By a constant.
template <class A, uint32 Bits>
struct Div<A, Scalar<Bits>>
{
    template <class Number, class Operands>
    static WPK_DEVICE Number evaluate(Number acc, const Operands& operands)
    {
        const Number a = A::evaluate(acc, operands);
        if constexpr (isSame<Number, float> && isOrdinaryDivisor(Bits))
            return quotientBy(a, asFloat(Bits), 1.0f / (2.0f * asFloat(Bits)));
        else
            return quotient(a, static_cast<Number>(asFloat(Bits)));
    }
};
template <class A, uint32 Bits>
struct RoundEven<Div<A, Scalar<Bits>>>
{
    template <class Number, class Operands>
    static WPK_DEVICE Number evaluate(Number acc, const Operands& operands)
    {
        if constexpr (isSame<Number, float> && isOrdinaryDivisor(Bits))
            return integerQuotientBy(A::evaluate(acc, operands), asFloat(Bits), 1.0f / (2.0f * asFloat(Bits)));
        else
            return roundedToEven(Div<A, Scalar<Bits>>::evaluate(acc, operands));
    }
};

// By an argument.
template <class A, int I>
struct Div<A, Divisor<I>>
{
    template <class Number, class Operands>
    static WPK_DEVICE Number evaluate(Number acc, const Operands& operands)
    {
        static_assert(isSame<Number, float>, "integers are divided by operands");
        return quotientBy(A::evaluate(acc, operands), operands[I], operands[I + 1]);
    }
};
template <class A, int I>
struct RoundEven<Div<A, Divisor<I>>>
{
    template <class Number, class Operands>
    static WPK_DEVICE Number evaluate(Number acc, const Operands& operands)
    {
        static_assert(isSame<Number, float>, "integers are divided by operands");
        return integerQuotientBy(A::evaluate(acc, operands), operands[I], operands[I + 1]);
    }
};

#undef WPK_UNARY_OPERATION
#undef WPK_BINARY_OPERATION

} // namespace wpk
