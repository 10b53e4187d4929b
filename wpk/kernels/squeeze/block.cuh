// A block of a squeeze (wpk/schedules/squeeze.cuh): its part of the images and weights, and where blocks meet.
#pragma once

#include <wpk/kernels/barriers/cluster_copy.cuh>
#include <wpk/kernels/barriers/mbarrier.cuh>
#include <wpk/kernels/operands/operand_elements.cuh>
#include <wpk/kernels/operands/tensor.cuh>
#include <wpk/kernels/places/index.cuh>
#include <wpk/kernels/squeeze/shape.cuh>

namespace wpk
{

namespace detail
{

// Where a block is, what it holds besides shared memory, and how it meets the others.
template <class Problem, class Schedule>
struct SqueezeBlock
{
    using Shape = SqueezeShape<Problem, Schedule>;
    using Weight = typename Shape::Weight;
    using X = typename Problem::X;
    static constexpr int run = Shape::run, threads = Shape::threads, blocks = Shape::blocks;
    static constexpr int hiddenCount = Problem::Hidden::count;
    static constexpr int hiddenTurns = ceilDivide(Shape::hiddenRuns * run, threads);
    static constexpr int gateTurns = ceilDivide(Shape::gateSlice * run, threads);

    const void* const* inputs; // x, down, up, operands
    float* shared;
    int image, rank, thread;
    OperandElements<typename Problem::Hidden> ofHidden[hiddenTurns];
    OperandElements<typename Problem::Gates> ofGates[gateTurns];

    WPK_DEVICE Weight* staged() const
    {
        return reinterpret_cast<Weight*>(shared + Shape::floats);
    }
    // A run of channels of a pixel, both counted from the first that this block pools.
    WPK_DEVICE typename X::Type* kept(int pixel, int column) const
    {
        auto* const images = reinterpret_cast<typename X::Type*>(reinterpret_cast<char*>(shared) + Shape::keptAt);
        return images + (pixel * Shape::pooled + column) * run;
    }
    WPK_DEVICE void loadKept(int pixel, int column, typename X::Type (&row)[run]) const
    {
        constexpr int chunk = 16 / static_cast<int>(sizeof(typename X::Type));
        WPK_UNROLL
        for (int i = 0; i < run; i += chunk)
        {
            const auto part = load<typename X::Type, chunk>(kept(pixel, column) + i);
            WPK_UNROLL
            for (int j = 0; j < chunk; ++j)
                row[i + j] = part[j];
        }
    }
    WPK_DEVICE int runsOfDown() const // of this block's columns
    {
        return maxOf(0, minOf(Shape::slice, Shape::weightRuns - rank * Shape::slice));
    }
    WPK_DEVICE int rowsOfUp() const
    {
        return maxOf(0, minOf(Shape::gateSlice * run, Problem::k - rank * Shape::gateSlice * run));
    }
    // Where this block's part of a weight begins; the weight itself where it has none.
    WPK_DEVICE const Weight* ownDown() const
    {
        const auto* const down = static_cast<const Weight*>(inputs[1]);
        return runsOfDown() > 0 ? down + rank * Shape::slice * run : down;
    }
    WPK_DEVICE const Weight* ownUp() const
    {
        const auto* const up = static_cast<const Weight*>(inputs[2]);
        return rowsOfUp() > 0 ? up + rank * Shape::gateSlice * run * Shape::hiddenRuns * run : up;
    }

    // Where blocks meet; each has a barrier.
    enum Meeting
    {
        sumsMeet,
        partsMeet,
        gatesMeet,
        meetings
    };
    static constexpr int hiddenChunks = ceilDivide(Problem::hidden, 4); // four floats are sent at once
    WPK_DEVICE SharedAddress barrierOf(Meeting meeting) const
    {
        return sharedAddress(shared + Shape::barriersAt) + meeting * 8;
    }

    // What comes is known from the beginning. Behind it stands waitCluster, before anything is sent.
    WPK_DEVICE void prepareMeetings() const
    {
        if (thread == 0)
        {
            constexpr int ofSlice = Shape::slice * run;
            const int pooled = maxOf(0, minOf(ofSlice, Shape::pooled * run - rank * ofSlice));
            const int floats[meetings] = {pooled, hiddenChunks * 4, Shape::gateSlice * run};
            WPK_UNROLL
            for (int meeting = 0; meeting < meetings; ++meeting)
                initBarrier(barrierOf(Meeting(meeting)), 1);
            fenceBarrierInit();
            WPK_UNROLL
            for (int meeting = 0; meeting < meetings; ++meeting)
                arriveExpectBytes(barrierOf(Meeting(meeting)), blocks * floats[meeting] * 4); // @bytes_announced
        }
        arriveReadCluster(); // @meetings_told
    }

    // Sends `Chunks` chunks of four floats to every block, this one too, where they lie from `place` on: to block b
    // those from b * `step` on, as far as `end`.
    template <int Chunks>
    WPK_DEVICE void sendToAll(Meeting meeting, const float* from, int step, int end, int place) const
    {
        for (int i = thread; i < blocks * Chunks; i += threads)
        {
            const int target = (i / Chunks + rank) % blocks, chunk = i % Chunks; // each begins with another one
            const int at = target * step + chunk * 4;
            if (at < end)
                storeAsync(clusterAddress(sharedAddress(shared + place + chunk * 4), target), load<float, 4>(from + at),
                    clusterAddress(barrierOf(meeting), target));
        }
    }

    // A value of every block's, added in their order; `pitch` floats lie between them.
    WPK_DEVICE float sumOfBlocks(const float* values, int pitch) const
    {
        float sum = values[0];
        WPK_UNROLL
        for (int block = 1; block < blocks; ++block)
            sum += values[block * pitch];
        return sum;
    }

    WPK_DEVICE int firstPixel() const
    {
        return Shape::byPixels ? rank * Shape::pixels : 0;
    }
    WPK_DEVICE int endPixel() const
    {
        return minOf(Problem::pixels, firstPixel() + Shape::pixels);
    }
    WPK_DEVICE int firstChannel() const // of those that it pools
    {
        return Shape::byPixels ? 0 : rank * Shape::slice * run;
    }
};

} // namespace detail

} // namespace wpk
