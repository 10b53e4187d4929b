// What the gates of a squeeze scale (wpk/schedules/squeeze.cuh), or the gates themselves.
#pragma once

#include <wpk/kernels/operands/tensor.cuh>
#include <wpk/kernels/squeeze/block.cuh>
#include <wpk/kernels/sums/warp.cuh>

namespace wpk
{

namespace detail
{

// What is scaled, a row of a run's elements at a time; pointers to it begin at `at`.
template <class Problem>
struct ScaledRows
{
    static constexpr int at = 3 + Problem::Hidden::count + Problem::Gates::count;
    using Operands = OperandRows<typename Problem::Scaled, kSqueezeRun>;
};

// Whether what is scaled may be what is kept; the launch's pointers say whether it is.
template <class Problem, class Schedule>
inline constexpr bool scalesKept =
    Schedule::kept != 0 && Problem::places > 1
    && Problem::places == Problem::pixels&& Problem::k
           == Problem::c&& isSame<typename Problem::Scaled, Tensors<typename Problem::X>>;

// A run of channels that was kept, as the only operand.
template <class Problem, class Schedule>
WPK_DEVICE void takeKept(const SqueezeBlock<Problem, Schedule>& block, typename ScaledRows<Problem>::Operands& operands,
    int place, int column)
{
    constexpr int run = kSqueezeRun;
    typename Problem::X::Type row[run];
    block.loadKept(place, column, row);
    WPK_UNROLL
    for (int i = 0; i < run; ++i)
        operands.values[i][0] = toFloat(row[i]);
}

template <class Problem, class Schedule>
WPK_DEVICE void scaleAlongPlaces(
    const SqueezeBlock<Problem, Schedule>& block, void* y, const float* gates, int begin, int first, int end)
{
    using Shape = SqueezeShape<Problem, Schedule>;
    using Y = typename Problem::Y;
    constexpr int run = Shape::run, threads = Shape::threads;
    for (int own = warpIndex(); own < Shape::stored * run; own += threads / kWarpSize)
    {
        const int channel = begin + own;
        for (int p = first + laneIndex() * run; channel < Problem::k && p < end; p += kWarpSize * run)
        {
            const int valid = minOf(run, end - p);
            typename ScaledRows<Problem>::Operands operands;
            operands.load(block.inputs + ScaledRows<Problem>::at, valid, block.image, channel, p);
            float row[run];
            WPK_UNROLL
            for (int i = 0; i < run; ++i)
                row[i] = Problem::ScaledOf::evaluate(gates[own], operands.values[i]);
            storeRowOf<Y, run>(y, Y::offset(block.image, channel, p), valid, valid, row);
        }
    }
}

template <class Problem, class Schedule>
WPK_DEVICE void scaleAlongChannels(
    const SqueezeBlock<Problem, Schedule>& block, void* y, const float* gates, int begin, int first, int end)
{
    using Shape = SqueezeShape<Problem, Schedule>;
    using Y = typename Problem::Y;
    constexpr int run = Shape::run, threads = Shape::threads;
    constexpr int columns = minOf(Shape::stored, threads), lanes = threads / columns;
    constexpr int places = Shape::scales ? Shape::pixels : 1;
    constexpr int perRow = run * maxOf(1, ScaledRows<Problem>::Operands::count);
    constexpr int atOnce = maxOf(1, minOf(minOf(4, ceilDivide(places, lanes)), 64 / perRow));
    const int lane = block.thread / columns;
    const bool isKept = scalesKept<Problem, Schedule> && block.inputs[ScaledRows<Problem>::at] == block.inputs[0];
    for (int column = block.thread % columns; lane < lanes && column < Shape::stored; column += columns)
    {
        const int channel = begin + column * run;
        const int valid = minOf(run, Problem::k - channel), room = valid + Problem::rowPadding;
        if (room <= 0)
            continue;
        for (int p = first + lane; p < end; p += atOnce * lanes)
        {
            typename ScaledRows<Problem>::Operands operands[atOnce];
            WPK_UNROLL
            for (int j = 0; j < atOnce; ++j)
            {
                const int place = minOf(p + j * lanes, end - 1);
                if (valid > 0 && isKept)
                    takeKept(block, operands[j], place - first, column); // @kept_pixel
                else if (valid > 0)
                    operands[j].load(block.inputs + ScaledRows<Problem>::at, valid, block.image, place, channel);
            }
            WPK_UNROLL
            for (int j = 0; j < atOnce; ++j)
            {
                const int place = p + j * lanes;
                if (place >= end)
                    continue;
                float row[run];
                WPK_UNROLL
                for (int i = 0; i < run; ++i)
                    row[i] =
                        i < valid ? Problem::ScaledOf::evaluate(gates[column * run + i], operands[j].values[i]) : 0.0f;
                storeRowOf<Y, run>(y, Y::offset(block.image, place, channel), valid, minOf(run, room), row);
            }
        }
    }
}

// Writes what the gates make of this block's part of the images, or the gates themselves.
template <class Problem, class Schedule>
WPK_DEVICE void scaleImages(const SqueezeBlock<Problem, Schedule>& block, void* y)
{
    using Shape = SqueezeShape<Problem, Schedule>;
    constexpr int run = Shape::run;
    const float* const gates = block.shared + (Shape::sharesGates ? Shape::allGatesAt : Shape::gatesAt);
    const int begin = Shape::sharesGates ? 0 : block.rank * Shape::gateSlice * run;
    const int first = Shape::scales ? block.firstPixel() : 0, end = Shape::scales ? block.endPixel() : 1;
    if constexpr (Problem::placesFastest)
        scaleAlongPlaces(block, y, gates, begin, first, end);
    else
        scaleAlongChannels(block, y, gates, begin, first, end);
}

} // namespace detail

} // namespace wpk
