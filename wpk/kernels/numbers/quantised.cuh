// Quantisation to 8 bits by a scale that is known: to nearest, ties to even, limited, without a division and without
// an instruction that rounds or converts an element alone.
//
// `wpk.problems.quantisation` gives five numbers of a scale d: the limits of what is divided, and 1 / d as a
// rounded-down reciprocal and the positive rest of it. By them fma(a, reciprocal, a * rest) is within 2^-45 of a / d
// before its one rounding, and it is a float that rounds to 8 bits as the rounded quotient does: no float divided by d
// is as close to a number where that could change, which Python makes sure of for each d. Both parts have one sign, so
// that zeros keep theirs and infinities stay infinite.
#pragma once

#include <wpk/kernels/numbers/scalar.cuh>

namespace wpk
{
namespace detail
{

// Added to a number below 2^22, it leaves the nearest integer in the lowest bits: 1.5 * 2^23.
inline constexpr float kWholePlace = 12582912.0f;

// The value within limits; NaN, also a signalling one, gives the lower limit.
WPK_DEVICE float numberWithin(float value, float least, float most)
{
#if WPK_ON_GPU
    return fminf(fmaxf(value, least), most);
#else
    return value > least ? minOf(value, most) : least;
#endif
}

} // namespace detail

// Where the numbers of a quantisation stand among operands.
enum class QuantisationNumber : int
{
    least,
    most,
    reciprocal,
    rest,
    ofNan,
    zero
};

// A number on its way to 8 bits of type T. Moved: there is a zero point. Guarded: NaN, which integers have not, gives
// 0, and `ofNan` has to say so.
//
// Integers stand in the lowest bits of a float between 2^23 and 2^24, those of floating point as what is rounded next.
template <class T, bool Moved, bool Guarded>
struct QuantisedNumber
{
    // The number of `value`; `numbers` are those of the quantisation, in order.
    template <class Numbers>
    static WPK_DEVICE float of(float value, const Numbers& numbers)
    {
        using enum QuantisationNumber;
        const auto number = [&numbers](QuantisationNumber which)
        {
            return numbers(static_cast<int>(which));
        };
        if constexpr (isFloat8<T>)
        {
            const float limited = smaller(larger(value, number(least)), number(most));
            return fmaf(limited, number(reciprocal), limited * number(rest));
        }
        else
        {
            if constexpr (Guarded)
                value = isNan(value) ? number(ofNan) : value;
            const float limited = detail::numberWithin(value, number(least), number(most));
            const float steps = fmaf(limited, number(reciprocal), limited * number(rest)) + detail::kWholePlace;
            return Moved ? steps + number(zero) : steps;
        }
    }

    // What comes back from memory.
    static WPK_DEVICE float restored(float number)
    {
        if constexpr (isFloat8<T>)
            return toFloat(T{static_cast<uint8>(detail::pairTo8Bits<T>(number, 0.0f))});
        else
            return number - detail::kWholePlace;
    }

    // As they lie in memory; 0 gives 0.
    template <int N>
    static WPK_DEVICE void store(const float (&numbers)[N], T (&row)[N])
    {
        constexpr int kTogether = isFloat8<T> && N % 2 == 0 ? 2 : 1;
        WPK_UNROLL
        for (int i = 0; i < N; i += kTogether)
        {
            if constexpr (isFloat8<T>)
            {
                const float second = kTogether == 2 ? numbers[i + kTogether - 1] : 0.0f;
                const uint16 pair = detail::pairTo8Bits<T>(numbers[i], second);
                row[i] = T{static_cast<uint8>(pair)};
                if constexpr (kTogether == 2)
                    row[i + 1] = T{static_cast<uint8>(pair >> 8)};
            }
            else
            {
                row[i] = static_cast<T>(asUint32(numbers[i]) & 0xffu);
            }
        }
    }
};

} // namespace wpk
