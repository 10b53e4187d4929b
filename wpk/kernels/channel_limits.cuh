// Keeps the input of a matrix product between limits that its channels have: min(max(x, lower[c]), upper[c]).
//
// A normalisation and a Relu in front of a convolution become this; scale and shift are in the weights. Positions are
// those of the reduction, (tap, channel); what lies beyond it, or in the padding of a tap, stays zero.
#pragma once

#include <wpk/kernels/mma.cuh>
#include <wpk/kernels/operands.cuh>
#include <wpk/kernels/split_fp32.cuh>
#include <wpk/kernels/vector.cuh>
#include <wpk/kernels/warp.cuh>

namespace wpk
{

// Tiles are multiplied as they were loaded.
struct NoLimits
{
    template <class T, int N>
    WPK_DEVICE void keepValues(T (&)[N], int) const
    {
    }
    template <class T, int Tiles>
    WPK_DEVICE void keepFragments(uint32 (&)[Tiles][4], int) const
    {
    }
};

// B: type of the limits. Channels of them lie in a tap of Tap positions, a multiple of 2.
template <class B, bool HasUpper, int Channels, int Tap, int Reduction>
class ChannelLimits
{
public:
    // `inputs` are the lower limits and, if there are any, the upper ones.
    WPK_DEVICE explicit ChannelLimits(const void* const* inputs)
        : lower_(static_cast<const B*>(inputs[0])), upper_(static_cast<const B*>(inputs[HasUpper ? 1 : 0]))
    {
    }

    // N values from a position on.
    template <class T, int N>
    WPK_DEVICE void keepValues(T (&values)[N], int position) const
    {
        WPK_UNROLL
        for (int e = 0; e < N; ++e)
        {
            const Range range = rangeAt(position + e);
            values[e] = fromFloat<T>(range.keep(toFloat(values[e])));
        }
    }

    // A warp's fragments of the mma step `step` of the reduction (mma.cuh says where its elements lie).
    template <class T, int Tiles>
    WPK_DEVICE void keepFragments(uint32 (&fragments)[Tiles][4], int step) const
    {
        constexpr int kDepth = MmaDepth<T>::value;
        constexpr int kPerWord = kDepth == 16 ? 2 : 1;
        const int first = step * kDepth + laneIndex() % 4 * kPerWord;
        WPK_UNROLL
        for (int half = 0; half < 2; ++half)
        {
            Range ranges[kPerWord];
            rangesAt(ranges, first + half * (kDepth / 2));
            WPK_UNROLL
            for (int i = 0; i < Tiles; ++i)
            {
                keepWord<T>(fragments[i][half * 2], ranges);
                keepWord<T>(fragments[i][half * 2 + 1], ranges);
            }
        }
    }

private:
    struct Range
    {
        float lower, upper;
        bool exists;

        WPK_DEVICE float keep(float value) const
        {
            if (!exists)
                return value;
            const float raised = value > lower || isNan(value) ? value : lower;
            return !HasUpper || raised < upper || isNan(raised) ? raised : upper;
        }
    };

    WPK_DEVICE Range rangeAt(int position) const
    {
        const int channel = Reduction == Tap ? position : position % Tap;
        const bool exists = position < Reduction && (Channels == Tap || channel < Channels);
        if (!exists)
            return {0.0f, 0.0f, false};
        return {toFloat(lower_[channel]), HasUpper ? toFloat(upper_[channel]) : 0.0f, true};
    }

    // Of N neighbouring positions, the first a multiple of N.
    template <int N>
    WPK_DEVICE void rangesAt(Range (&ranges)[N], int position) const
    {
        if constexpr (Channels == Tap && Tap % N == 0)
        {
            const int channel = Reduction == Tap ? position : position % Tap;
            const bool exists = position < Reduction;
            const auto lower = exists ? load<B, N>(lower_ + channel) : zeroVector<B, N>();
            const auto upper = exists && HasUpper ? load<B, N>(upper_ + channel) : zeroVector<B, N>();
            WPK_UNROLL
            for (int e = 0; e < N; ++e)
                ranges[e] = {toFloat(lower[e]), toFloat(upper[e]), exists};
        }
        else
        {
            WPK_UNROLL
            for (int e = 0; e < N; ++e)
                ranges[e] = rangeAt(position + e);
        }
    }

    template <class T>
    static WPK_DEVICE void keepWord(uint32& word, const Range (&range)[1])
    {
        word = asUint32(range[0].keep(asFloat(word)));
    }
    template <class T>
    static WPK_DEVICE void keepWord(uint32& word, const Range (&range)[2])
    {
        word = pack2<T>(range[0].keep(unpackLow<T>(word)), range[1].keep(unpackHigh<T>(word)));
    }

    const B *lower_, *upper_;
};

namespace detail
{

template <class Problem, int Tap>
WPK_DEVICE auto inputLimits(const void* const* inputs)
{
    if constexpr (requires { typename Problem::Limit; })
    {
        constexpr int kReduction = Problem::filter_h * Problem::filter_w * Tap;
        return ChannelLimits<typename Problem::Limit, Problem::has_upper, Problem::c, Tap, kReduction>(inputs);
    }
    else
    {
        return NoLimits{};
    }
}

template <class Problem>
WPK_DEVICE constexpr int inputLimitCount()
{
    if constexpr (requires { typename Problem::Limit; })
        return Problem::has_upper ? 2 : 1;
    return 0;
}

} // namespace detail

// How many inputs hold limits; they follow the operands of the epilogue.
template <class Problem>
inline constexpr int kInputLimits = detail::inputLimitCount<Problem>();

// The limits of a convolution whose unit names the type Limit and says has_upper; otherwise none. Tap: positions of the
// reduction from one tap to the next.
template <class Problem, int Tap = Problem::tap, int N>
WPK_DEVICE auto inputLimits(const Inputs<N>& inputs)
{
    return detail::inputLimits<Problem, Tap>(inputs.at + (N - kInputLimits<Problem>));
}

} // namespace wpk
