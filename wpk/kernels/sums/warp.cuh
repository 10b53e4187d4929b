// Values exchanged between the lanes of a warp, and sums and maxima over warps and blocks.
//
// Blocks are one-dimensional here: the lane is threadIdx.x % 32 and the warp threadIdx.x / 32. Reductions
// combine in the butterfly order (distance 16, 8, ..., 1), so every lane gets the same bits.
#pragma once

#include <wpk/kernels/numbers/number.cuh>

namespace wpk
{

constexpr int kWarpSize = 32;
constexpr uint32 kAllLanes = 0xffffffffu;

WPK_DEVICE int laneIndex()
{
    return static_cast<int>(threadIdx.x % kWarpSize);
}
WPK_DEVICE int warpIndex()
{
    return static_cast<int>(threadIdx.x / kWarpSize);
}

namespace detail
{
#if !WPK_ON_GPU
template <class T>
WPK_DEVICE T shuffleFrom(uint32 mask, T value, uint32 source)
{
    uint32 words[sizeof(T) / 4];
    memcpy(words, &value, sizeof(value));
    for (uint32& bits : words)
    {
        emulated::ShuffleOperands operands{bits, bits, source};
        wpk_emulator_collective(mask, emulated::Collective::shuffle, &operands);
        bits = operands.result;
    }
    memcpy(&value, words, sizeof(value));
    return value;
}
#endif
} // namespace detail

// The value, a float, uint32 or double, that lane `source` (0..31) passed. All lanes of `mask` call it; `source` is one
// of them.
template <class T>
WPK_DEVICE T shuffle(T value, int source, uint32 mask = kAllLanes)
{
#if WPK_ON_GPU
    return __shfl_sync(mask, value, source);
#else
    return detail::shuffleFrom(mask, value, static_cast<uint32>(source) % kWarpSize);
#endif
}

// The value of the lane whose number differs by the bits of `distance` (1..31).
template <class T>
WPK_DEVICE T shuffleXor(T value, int distance, uint32 mask = kAllLanes)
{
#if WPK_ON_GPU
    return __shfl_xor_sync(mask, value, distance);
#else
    return detail::shuffleFrom(mask, value, wpk_emulator_thread->lane ^ static_cast<uint32>(distance));
#endif
}

// The value of the lane `distance` below this one; the lowest `distance` lanes keep their own.
template <class T>
WPK_DEVICE T shuffleUp(T value, int distance, uint32 mask = kAllLanes)
{
#if WPK_ON_GPU
    return __shfl_up_sync(mask, value, distance);
#else
    const uint32 lane = wpk_emulator_thread->lane, step = static_cast<uint32>(distance);
    return detail::shuffleFrom(mask, value, lane < step ? lane : lane - step);
#endif
}

// The value of the lane `distance` above this one; the highest `distance` lanes keep their own.
template <class T>
WPK_DEVICE T shuffleDown(T value, int distance, uint32 mask = kAllLanes)
{
#if WPK_ON_GPU
    return __shfl_down_sync(mask, value, distance);
#else
    const uint32 lane = wpk_emulator_thread->lane, source = lane + static_cast<uint32>(distance);
    return detail::shuffleFrom(mask, value, source >= kWarpSize ? lane : source);
#endif
}

// Bit i is set when lane i of `mask` passed true.
WPK_DEVICE uint32 ballot(bool predicate, uint32 mask = kAllLanes)
{
#if WPK_ON_GPU
    return __ballot_sync(mask, predicate);
#else
    emulated::VoteOperands operands{predicate, 0};
    wpk_emulator_collective(mask, emulated::Collective::vote, &operands);
    return operands.result;
#endif
}

namespace detail
{

struct Sum
{
    static constexpr int kind = 0; // emulated::ReduceOperands
    template <class Number>
    static WPK_DEVICE Number combine(Number a, Number b)
    {
        return a + b;
    }
};
struct Maximum
{
    static constexpr int kind = 1;
    template <class Number>
    static WPK_DEVICE Number combine(Number a, Number b)
    {
        return largerNumber(a, b);
    }
};

// Over neighbouring Lanes, a power of two: each such group of the warp apart.
template <class Operation, int Lanes = kWarpSize, class Number>
WPK_DEVICE Number reduceWarp(Number value)
{
#if !WPK_ON_GPU
    if constexpr (isSame<Number, float> && Lanes == kWarpSize) // at once, which is faster
    {
        emulated::ReduceOperands operands{value, 0.0f, Operation::kind};
        wpk_emulator_collective(kAllLanes, emulated::Collective::reduce, &operands);
        return operands.result;
    }
#endif
    WPK_UNROLL
    for (int distance = Lanes / 2; distance > 0; distance /= 2)
        value = Operation::combine(value, shuffleXor(value, distance));
    return value;
}

// A last warp with fewer than 32 threads cannot shuffle over all lanes, so its values go through
// scratch one by one.
template <class Operation, int Threads, class Number>
WPK_DEVICE Number reduceBlock(Number value, Number* scratch)
{
    constexpr int fullWarps = Threads / kWarpSize, rest = Threads % kWarpSize;
    __syncthreads(); // scratch may still be read from an earlier reduction
    if (warpIndex() < fullWarps)
    {
        const Number warpValue = reduceWarp<Operation>(value);
        if (laneIndex() == 0)
            scratch[warpIndex()] = warpValue;
    }
    else
    {
        scratch[fullWarps + laneIndex()] = value;
    }
    __syncthreads();
    Number result = scratch[0];
    for (int i = 1; i < fullWarps + rest; ++i)
        result = Operation::combine(result, scratch[i]);
    return result;
}

} // namespace detail

// Sum over the 32 lanes of the warp, in every lane; or over each group of Lanes neighbours, a power of two.
template <int Lanes = kWarpSize, class Number>
WPK_DEVICE Number warpSum(Number value)
{
    return detail::reduceWarp<detail::Sum, Lanes>(value);
}

// Maximum (a NaN loses to a number) over the same lanes.
template <int Lanes = kWarpSize, class Number>
WPK_DEVICE Number warpMax(Number value)
{
    return detail::reduceWarp<detail::Maximum, Lanes>(value);
}

// How many numbers of shared scratch blockSum and blockMax need for a block of `threads`.
WPK_DEVICE constexpr int blockScratch(int threads)
{
    return threads / kWarpSize + threads % kWarpSize;
}

// Sum over the block, in every thread. The block has exactly Threads threads, all of which call this;
// `scratch` is shared memory of blockScratch(Threads) numbers, free again once all have returned and
// the next barrier (blockSum and blockMax begin with one) has passed.
template <int Threads, class Number>
WPK_DEVICE Number blockSum(Number value, Number* scratch)
{
    return detail::reduceBlock<detail::Sum, Threads>(value, scratch);
}

// Maximum over the block, on the same terms.
template <int Threads, class Number>
WPK_DEVICE Number blockMax(Number value, Number* scratch)
{
    return detail::reduceBlock<detail::Maximum, Threads>(value, scratch);
}

} // namespace wpk
