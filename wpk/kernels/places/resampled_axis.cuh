// Resampling along one axis: which samples a run of neighbouring outputs reads, and how far each lies between two.
//
// Where an output's position moves by 1 / Ratio, runs share samples, and what an output reads of them is known when the
// kernel is compiled. Numbers are those that positions are computed in.
#pragma once

#include <wpk/kernels/numbers/quotient.cuh>

namespace wpk
{

// As wpk/problems/movement.py has them.
enum class ResizeCoordinates
{
    halfPixel,
    pytorchHalfPixel,
    alignCorners,
    asymmetric
};

// What becomes of a position: the two samples round it, or the nearest.
enum class Sampling
{
    linear,
    roundPreferFloor,
    roundPreferCeil,
    floor,
    ceil
};

namespace detail
{

// A scale of its bits.
template <class Number, class Bits>
WPK_DEVICE Number scaleOf(Bits bits)
{
    if constexpr (isSame<Number, double>)
        return asDouble(bits);
    else
        return asFloat(bits);
}

// a / d, correctly rounded: a rounding may choose another sample. d is known when the kernel is compiled, and neither
// tiny nor huge, being a number of samples or outputs or the quotient of two; a is 0 or a half at least.
template <class Number>
WPK_DEVICE Number placeQuotient(Number a, Number d)
{
    if constexpr (isSame<Number, double>)
        return a / d;
    else
        return quotientByReciprocal(a, d, 1.0f / (2.0f * d));
}

// Where output index i of `to` lies in the input's `from` samples; `scale` is output size / input size.
template <ResizeCoordinates Mode, class Number>
WPK_DEVICE Number sourcePosition(int i, int from, int to, Number scale)
{
    const Number x = static_cast<Number>(i);
    if constexpr (Mode == ResizeCoordinates::alignCorners)
    {
        return to == 1 ? Number(0) : placeQuotient(x * static_cast<Number>(from - 1), static_cast<Number>(to - 1));
    }
    else if constexpr (Mode == ResizeCoordinates::asymmetric)
    {
        return placeQuotient(x, scale);
    }
    else
    {
        if (Mode == ResizeCoordinates::pytorchHalfPixel && to == 1)
            return Number(0);
        return placeQuotient(x + Number(0.5), scale) - Number(0.5);
    }
}

template <Sampling Mode, class Number>
WPK_DEVICE int nearestSample(Number position, int from)
{
    Number sample;
    if constexpr (Mode == Sampling::roundPreferFloor)
    {
        sample = roundedUp(position - Number(0.5));
    }
    else if constexpr (Mode == Sampling::roundPreferCeil)
    {
        sample = roundedDown(position + Number(0.5));
    }
    else
    {
        sample = Mode == Sampling::floor ? roundedDown(position) : roundedUp(position);
    }
    return minOf(maxOf(static_cast<int>(sample), 0), from - 1);
}

// The two samples round a position, and how far it lies towards the second.
template <class Number>
struct Between
{
    int low, high;
    Number weight;

    WPK_DEVICE Between(Number position, int from)
    {
        const Number inside = smaller(largerNumber(position, Number(0)), static_cast<Number>(from - 1));
        low = static_cast<int>(inside);
        high = minOf(low + 1, from - 1);
        weight = inside - static_cast<Number>(low); // @between_pixels
    }
};

} // namespace detail

// From samples become To. Ratio: outputs a sample, where `bits`, those of the scale, say a whole number of them; else
// 0.
template <ResizeCoordinates Mode, Sampling Kind, int From, int To, int Ratio>
struct Resampling
{
    static constexpr ResizeCoordinates mode = Mode;
    static constexpr Sampling kind = Kind;
    static constexpr int from = From, to = To, read = Kind == Sampling::linear ? 2 : 1;
    static constexpr bool isRegular = Ratio > 0 && Mode != ResizeCoordinates::alignCorners
                                      && !(Mode == ResizeCoordinates::pytorchHalfPixel && To == 1);
    static constexpr int ratio = isRegular ? Ratio : 1;

    // The sample at or below the position of output i > -ratio, or the nearest, of an axis without ends, and what the
    // position is beyond it, in parts of 1 / (2 * ratio).
    static WPK_DEVICE constexpr int sample(int i)
    {
        return shifted(i) / (2 * ratio) - 1;
    }
    static WPK_DEVICE constexpr int beyond(int i)
    {
        return shifted(i) % (2 * ratio);
    }

    // Whether all runs of Count outputs read the same samples from one end to the other.
    template <int Count>
    static WPK_DEVICE constexpr bool isOneSample()
    {
        bool same = isRegular && ratio % Count == 0;
        for (int first = 0; same && first < ratio; first += Count)
            same = sample(first) == sample(first + Count - 1);
        return same;
    }

private:
    static WPK_DEVICE constexpr int shifted(int i)
    {
        constexpr int centre = Mode == ResizeCoordinates::asymmetric ? 0 : 1 - ratio;
        constexpr int rounding = Kind == Sampling::roundPreferFloor  ? ratio - 1
                                 : Kind == Sampling::roundPreferCeil ? ratio
                                 : Kind == Sampling::ceil            ? 2 * ratio - 1
                                                                     : 0;
        return 2 * i + centre + rounding + 2 * ratio;
    }
};

// A run of Count neighbouring outputs, the first a multiple of Count. It reads the samples numbered at[...]; output j
// is of the one in slot(j), and where samples are interpolated, weight[j] of the one in the slot behind it.
template <class Along, int Count, class Number>
struct ResampledRun
{
    // Whether every run begins at a sample, so that all numbers but the first are known; or lies between two of them.
    static constexpr bool isWhole = Along::isRegular && Count % Along::ratio == 0;
    static constexpr bool isOne = !isWhole && Along::template isOneSample<Count>();
    static constexpr int slots = isWhole ? Along::sample(Count - 1) - Along::sample(0) + Along::read
                                 : isOne ? Along::read
                                         : Along::read * Count;
    int at[slots];
    Number weight[Count];

    static WPK_DEVICE constexpr int slot(int j)
    {
        return isWhole ? Along::sample(j) - Along::sample(0) : isOne ? 0 : Along::read * j;
    }

    template <class Bits>
    WPK_DEVICE ResampledRun(int first, Bits scale)
    {
        if constexpr (isWhole || isOne)
        {
            constexpr Number part = Number(1) / (2 * Along::ratio);
            const int start =
                isWhole ? first / Count * (Count / Along::ratio) + Along::sample(0) : Along::sample(first);
            const Number phase = isOne ? static_cast<Number>(Along::beyond(first)) * part : Number(0);
            WPK_UNROLL
            for (int s = 0; s < slots; ++s)
                at[s] = minOf(maxOf(start + s, 0), Along::from - 1); // @samples_end
            WPK_UNROLL
            for (int j = 0; j < Count; ++j)
                weight[j] = isWhole ? Along::beyond(j) * part : phase + 2 * j * part;
        }
        else
        {
            WPK_UNROLL
            for (int j = 0; j < Count; ++j)
            {
                const Number position = detail::sourcePosition<Along::mode>(
                    first + j, Along::from, Along::to, detail::scaleOf<Number>(scale));
                if constexpr (Along::kind == Sampling::linear)
                {
                    const detail::Between<Number> between(position, Along::from);
                    at[2 * j] = between.low;
                    at[2 * j + 1] = between.high;
                    weight[j] = between.weight;
                }
                else
                {
                    at[j] = detail::nearestSample<Along::kind>(position, Along::from);
                }
            }
        }
    }
};

} // namespace wpk
