// Softmax, log-softmax, layer norm and RMS norm of long rows, each of which the blocks of a cluster share.
//
// A row is `lines` lines of `columns`. Its chunks, V neighbouring elements each, go around: to the threads of the
// first block, to those of the second, and again, so that all blocks read near each other. Each statistic is a sum (or
// maximum) of the block, sent to all blocks of the cluster, and theirs, in the order of the blocks: they meet as those
// of squeeze.cuh do, by stores to places that nothing else uses, whose bytes a barrier counts. Where the schedule
// caches, the prologue's values stay in registers between the passes; otherwise every pass reads the inputs again.
//
// Statistics are computed in the numbers of the epilogue (`NumberOf`), like all else.
//
// Problem: Inputs, Operands and Y over (leading, o1, o2, line, column); kind; Prologue; Epilogue; epsilon as fp32 bits;
// lines, columns; rowPadding: zeros that follow each of y's lines.
#pragma once

#include <wpk/kernels/barriers/cluster_copy.cuh>
#include <wpk/kernels/barriers/early_launch.cuh>
#include <wpk/kernels/barriers/mbarrier.cuh>
#include <wpk/kernels/epilogue/constant_prefetch.cuh>
#include <wpk/kernels/places/index.cuh>
#include <wpk/kernels/rows/norm_row.cuh>
#include <wpk/kernels/sums/warp.cuh>

namespace wpk
{

namespace detail
{

// Vectors of a row, whose lines each begin with one.
template <class Problem, class Schedule>
inline constexpr int kChunksOfRow =
    Problem::lines * ceilDivide(Problem::columns + Problem::rowPadding, Schedule::vector);

template <class Problem, class Schedule>
inline constexpr int kRunsInCluster = ceilDivide(kChunksOfRow<Problem, Schedule>, Schedule::threads* Schedule::blocks);

// One thread's part of a row.
template <class Problem, class Schedule>
struct ClusterRow : NormValues<ClusterRow<Problem, Schedule>, Problem, Schedule, kRunsInCluster<Problem, Schedule>>
{
    using Values = NormValues<ClusterRow, Problem, Schedule, kRunsInCluster<Problem, Schedule>>;
    using typename Values::Number;
    using Values::V;
    static constexpr int threads = Schedule::threads, blocks = Schedule::blocks;
    static constexpr int room = Problem::columns + Problem::rowPadding, perLine = ceilDivide(room, V);
    static constexpr int chunks = kChunksOfRow<Problem, Schedule>;
    static constexpr int count = Problem::lines * Problem::columns;
    static constexpr int aheadWords = minOf(64, 16384 / threads); // of large blocks, a thread has few registers

    // Barriers; of the first and of the second statistic, a number of every block; what the block's warps have.
    static constexpr int meetings = 2, placesAt = meetings * 8 / static_cast<int>(sizeof(Number));
    static constexpr int scratchAt = placesAt + meetings * blocks;
    static_assert(Schedule::shared_bytes == (scratchAt + blockScratch(threads)) * static_cast<int>(sizeof(Number)),
        "Python and C++ count the same shared memory");

    const void* const* inputs;
    Number* shared;
    int leading, o1, o2, rank, thread;

    WPK_DEVICE int chunk(int run) const
    {
        return (run * blocks + rank) * threads + thread;
    }
    WPK_DEVICE int line(int run) const
    {
        return Problem::lines == 1 ? 0 : chunk(run) / perLine;
    }
    WPK_DEVICE int column(int run) const
    {
        return (Problem::lines == 1 ? chunk(run) : chunk(run) % perLine) * V;
    }
    WPK_DEVICE bool exists(int run) const
    {
        return chunks % (threads * blocks) == 0 || chunk(run) < chunks;
    }

    // Elements of run `run` that lie in the row; none where zero or negative.
    WPK_DEVICE int valid(int run) const
    {
        if (!exists(run))
            return 0;
        if constexpr (Problem::columns % V == 0 && Problem::rowPadding == 0)
            return V; // whole vectors, as the compiler sees
        return minOf(V, Problem::columns - column(run));
    }

    template <class Operands>
    WPK_DEVICE void load(Operands& operands, const void* const* pointers, int run) const
    {
        operands.load(pointers, valid(run), leading, o1, o2, line(run), column(run));
    }

    WPK_DEVICE SharedAddress barrierOf(int meeting) const
    {
        return sharedAddress(shared) + meeting * 8;
    }

    // What comes is known from the beginning. Behind it stands waitCluster, before anything is sent.
    WPK_DEVICE void prepareMeetings() const
    {
        if (thread == 0)
        {
            WPK_UNROLL
            for (int meeting = 0; meeting < meetings; ++meeting)
                initBarrier(barrierOf(meeting), 1);
            fenceBarrierInit();
            WPK_UNROLL
            for (int meeting = 0; meeting < meetings; ++meeting)
                arriveExpectBytes(barrierOf(meeting), blocks * static_cast<int>(sizeof(Number))); // @bytes_announced
        }
        arriveReadCluster(); // @meetings_told
    }

    // The sum or maximum over the row's elements of f(value), in every thread of every block.
    template <bool IsMaximum, class Function>
    WPK_DEVICE Number reduce(Function f) const
    {
        Number own = Values::template reduceOwn<IsMaximum>(f);
        Number* const scratch = shared + scratchAt;
        own = IsMaximum ? blockMax<threads>(own, scratch) : blockSum<threads>(own, scratch);
        return blocks == 1 ? own : ofAllBlocks<IsMaximum>(own);
    }

private:
    // Every block's number, combined in the order of the blocks.
    template <bool IsMaximum>
    WPK_DEVICE Number ofAllBlocks(Number own) const
    {
        const int meeting = met++;
        Number* const places = shared + placesAt + meeting * blocks; // @meeting_places
        if (thread < blocks)
        {
            const Vector<Number, 1> sent{{own}};
            storeAsync(clusterAddress(sharedAddress(places + rank), thread), sent, // @number_placed
                clusterAddress(barrierOf(meeting), thread));
        }
        waitBarrierOfCluster(barrierOf(meeting), 0); // @numbers_there
        Number result = places[0];
        WPK_UNROLL
        for (int block = 1; block < blocks; ++block)
            result = IsMaximum ? largerNumber(result, places[block]) : result + places[block];
        return result;
    }

    mutable int met = 0;
};

} // namespace detail

template <class Problem, class Schedule>
WPK_DEVICE void normalisationCluster(Inputs<Problem::Inputs::count + Problem::Operands::count> inputs, int n, void* y)
{
    using Y = typename Problem::Y;
    using Row = detail::ClusterRow<Problem, Schedule>;
    using Place = Domain<Problem::wide, Problem::o1, Problem::o2>;
    using Number = typename Row::Number;
    constexpr int V = Schedule::vector, blocks = Schedule::blocks;
    WPK_SHARED(Number, shared);
    (void)n; // the grid has as many clusters
    releaseIfEarly<Schedule>();
    const Place at(static_cast<int64>(blockIdx.x) / blocks);
    Row row{};
    row.inputs = inputs.at;
    row.shared = shared;
    row.leading = at.leading;
    row.o1 = at.at[0];
    row.o2 = at.at[1];
    row.rank = blocks > 1 ? clusterRank() : 0;
    row.thread = static_cast<int>(threadIdx.x);
    if constexpr (blocks > 1)
        row.prepareMeetings();
    const void* const* const operands = inputs.at + Problem::Inputs::count;
    using Tail = detail::NormTail<Problem, Row>;
    Tail tail;
    if constexpr (Tail::kBeforeWait)
        tail.load(row, operands);
    WPK_UNROLL
    for (int run = 0; !Tail::kBeforeWait && run < minOf(Row::runs, 8); ++run)
    {
        if (row.valid(run) > 0)
            prefetchConstants<Problem::operand_constants>(
                typename Problem::Operands{}, operands, row.leading, row.o1, row.o2, row.line(run), row.column(run));
    }
    waitIfEarly<Schedule>(); // @previous_awaited
    if constexpr (!Tail::kBeforeWait)
        tail.load(row, operands);
    row.prepare();
    if constexpr (blocks > 1)
        waitCluster(); // @meetings_prepared
    const detail::NormScale<Number> norm = detail::normScale<Problem>(row);
    Row::forRuns(
        [&](int run)
        {
            if (!row.exists(run))
                return;
            const int column = row.column(run), valid = row.valid(run);
            Number values[V] = {};
            if (valid > 0)
            {
                row.values(run, values);
                WPK_UNROLL
                for (int v = 0; v < V; ++v)
                    values[v] = norm.template applied<Problem::kind>(values[v]);
                tail.apply(values, row, operands, run);
            }
            storeRowOf<Y, V>(y, Y::offset(at.leading, at.at[0], at.at[1], row.line(run), column), valid,
                Row::room % V == 0 ? V : minOf(V, Row::room - column), values);
        });
}

} // namespace wpk
