// Keeps the input of a matrix product between limits that its channels have: min(max(x, lower[c]), upper[c]).
//
// A normalisation and a Relu in front of a convolution become this; scale and shift are in the weights. Positions are
// those of the reduction, (tap, channel); what lies beyond it, or in the padding of a tap, stays zero.
#pragma once

#include <wpk/kernels/copies/vector.cuh>
#include <wpk/kernels/mma/mma.cuh>
#include <wpk/kernels/mma/split_fp32.cuh>
#include <wpk/kernels/operands/operands.cuh>
#include <wpk/kernels/sums/warp.cuh>

namespace wpk
{

namespace detail
{

// Of words of fragments: one float, or two values of Half or Bfloat16.
template <class E>
WPK_DEVICE uint32 largerWord(uint32 a, uint32 b)
{
    if constexpr (isSame<E, float>)
    {
        return asUint32(larger(asFloat(a), asFloat(b)));
    }
    else
    {
#if WPK_ON_GPU && __CUDA_ARCH__ >= 800
        uint32 result;
        if constexpr (isSame<E, Half>)
            asm("max.NaN.f16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
        else
            asm("max.NaN.bf16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
        return result;
#else
        return pack2<E>(larger(unpackLow<E>(a), unpackLow<E>(b)), larger(unpackHigh<E>(a), unpackHigh<E>(b)));
#endif
    }
}
template <class E>
WPK_DEVICE uint32 smallerWord(uint32 a, uint32 b)
{
    if constexpr (isSame<E, float>)
    {
        return asUint32(smaller(asFloat(a), asFloat(b)));
    }
    else
    {
#if WPK_ON_GPU && __CUDA_ARCH__ >= 800
        uint32 result;
        if constexpr (isSame<E, Half>)
            asm("min.NaN.f16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
        else
            asm("min.NaN.bf16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
        return result;
#else
        return pack2<E>(smaller(unpackLow<E>(a), unpackLow<E>(b)), smaller(unpackHigh<E>(a), unpackHigh<E>(b)));
#endif
    }
}

} // namespace detail

// Tiles are multiplied as they were loaded.
struct NoLimits
{
    struct Step
    {
    };
    template <class T, int Together, int Steps>
    WPK_DEVICE void load(Step (&)[Steps], int) const
    {
    }
    template <class T, int Tiles>
    static WPK_DEVICE void keepFragments(uint32 (&)[Tiles][4], const Step&)
    {
    }
    template <class T, int N>
    WPK_DEVICE void keepValues(T (&)[N], int) const
    {
    }
};

// B: type of the limits. Channels of them lie in a tap of Tap positions, a multiple of 2.
template <class B, bool HasUpper, int Channels, int Tap, int Reduction>
class ChannelLimits
{
public:
    // Those of a lane's elements in an mma step, as the words of fragments (mma.cuh says where these lie).
    struct Step
    {
        uint32 lower[2], upper[2];
    };

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
            const Positions<1> here(position + e);
            if (!here.exists(0))
                continue;
            const float raised = larger(toFloat(values[e]), toFloat(lower_[here.channel(0)]));
            values[e] = fromFloat<T>(HasUpper ? smaller(raised, toFloat(upper_[here.channel(0)])) : raised);
        }
    }

    // Of Steps steps of the reduction from `first` on, a multiple of Together. Together so many lie in one tap, if they
    // divide it.
    template <class T, int Together, int Steps>
    WPK_DEVICE void load(Step (&limits)[Steps], int first) const
    {
        using E = typename MmaStored<T>::Type;
        constexpr int kDepth = MmaDepth<T>::value, kOfWord = 4 / static_cast<int>(sizeof(E));
        static_assert(Steps <= Together, "they lie together");
        const Positions<Together * kDepth> positions(first * kDepth);
        const int lane = laneIndex() % 4 * kOfWord;
        WPK_UNROLL
        for (int step = 0; step < Steps; ++step)
        {
            WPK_UNROLL
            for (int half = 0; half < 2; ++half)
            {
                const int place = step * kDepth + half * (kDepth / 2) + lane;
                limits[step].lower[half] = wordAt<E, kOfWord>(lower_, positions, place, asFloat(kMinusInfinity));
                if (HasUpper)
                    limits[step].upper[half] = wordAt<E, kOfWord>(upper_, positions, place, asFloat(kPlusInfinity));
            }
        }
    }

    // A warp's fragments of that step.
    template <class T, int Tiles>
    static WPK_DEVICE void keepFragments(uint32 (&fragments)[Tiles][4], const Step& limits)
    {
        using E = typename MmaStored<T>::Type;
        WPK_UNROLL
        for (int i = 0; i < Tiles; ++i)
        {
            WPK_UNROLL
            for (int word = 0; word < 4; ++word)
            {
                const uint32 raised = detail::largerWord<E>(fragments[i][word], limits.lower[word / 2]);
                fragments[i][word] = HasUpper ? detail::smallerWord<E>(raised, limits.upper[word / 2]) : raised;
            }
        }
    }

private:
    static constexpr uint32 kPlusInfinity = 0x7f800000u, kMinusInfinity = 0xff800000u;

    // Positions of the reduction from `first` on, a multiple of Count.
    template <int Count>
    class Positions
    {
    public:
        WPK_DEVICE explicit Positions(int first) : first_(first), channel_(channelOf(first)) {}
        WPK_DEVICE int channel(int place) const
        {
            return kInOneTap ? channel_ + place : channelOf(first_ + place);
        }
        WPK_DEVICE bool exists(int place) const
        {
            const bool isInside = kInOneTap ? first_ < Reduction : first_ + place < Reduction;
            return isInside && (Channels == Tap || channel(place) < Channels);
        }

    private:
        static constexpr bool kInOneTap = Tap % Count == 0;

        static WPK_DEVICE int channelOf(int position)
        {
            return Reduction == Tap ? position : position % Tap;
        }

        int first_, channel_;
    };

    // N neighbouring limits, the first at a multiple of N, as values of E; `none` where there are none.
    template <class E, int N, int Count>
    static WPK_DEVICE uint32 wordAt(const B* limits, const Positions<Count>& positions, int place, float none)
    {
        E values[N];
        if constexpr (Channels % N == 0)
        {
            const bool are = positions.exists(place);
            const auto loaded = are ? wpk::load<B, N>(limits + positions.channel(place)) : zeroVector<B, N>();
            WPK_UNROLL
            for (int e = 0; e < N; ++e)
                values[e] = are ? converted<E>(loaded[e]) : fromFloat<E>(none);
        }
        else
        {
            WPK_UNROLL
            for (int e = 0; e < N; ++e)
            {
                const bool is = positions.exists(place + e);
                values[e] = is ? converted<E>(limits[positions.channel(place + e)]) : fromFloat<E>(none);
            }
        }
        uint32 word;
        memcpy(&word, values, sizeof(word));
        return word;
    }
    template <class E>
    static WPK_DEVICE E converted(B limit)
    {
        if constexpr (isSame<E, B>)
            return limit;
        else
            return fromFloat<E>(toFloat(limit));
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
