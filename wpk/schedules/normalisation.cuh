// Softmax, log-softmax, layer norm and RMS norm of rows.
//
// `threads` threads share a row: one warp or some lanes of it, or a whole block. A block holds `rows` rows of a warp or
// less.
// Every thread takes runs of V elements, threads apart. Where the schedule caches, the prologue's
// values stay in registers between the passes over a row; otherwise every pass reads the inputs again.
//
// Statistics are computed in the numbers of the epilogue (`NumberOf`), like all else.
//
// Problem: Inputs, Operands and Y over (leading, o1, o2, column); kind; Prologue; Epilogue; epsilon as fp32 bits;
// columns; rowPadding: zeros that follow y's rows.
#pragma once

#include <wpk/kernels/barriers/early_launch.cuh>
#include <wpk/kernels/epilogue/constant_prefetch.cuh>
#include <wpk/kernels/places/index.cuh>
#include <wpk/kernels/rows/norm_row.cuh>
#include <wpk/kernels/sums/warp.cuh>

namespace wpk
{

namespace detail
{

template <class Problem, class Schedule>
inline constexpr int kRunsOfThread =
    ceilDivide(Problem::columns + Problem::rowPadding, Schedule::threads* Schedule::vector);

// One thread's part of a row.
template <class Problem, class Schedule>
struct NormRow : NormValues<NormRow<Problem, Schedule>, Problem, Schedule, kRunsOfThread<Problem, Schedule>>
{
    using Values = NormValues<NormRow, Problem, Schedule, kRunsOfThread<Problem, Schedule>>;
    using typename Values::Number;
    using Values::V;
    static constexpr int threads = Schedule::threads, stride = threads * V;
    static constexpr int count = Problem::columns, aheadWords = 64;
    const void* const* inputs;
    int leading, o1, o2, first;

    // Elements of run `run` that lie in the row; none where zero or negative.
    WPK_DEVICE int valid(int run) const
    {
        if constexpr (Problem::columns % V == 0)
            return column(run) < Problem::columns ? V : 0; // whole vectors, as the compiler sees
        return minOf(V, Problem::columns - column(run));
    }
    WPK_DEVICE int column(int run) const
    {
        return first + run * stride;
    }

    template <class Operands>
    WPK_DEVICE void load(Operands& operands, const void* const* pointers, int run) const
    {
        operands.load(pointers, valid(run), leading, o1, o2, column(run));
    }

    // The sum or maximum over the row's elements of f(value), in every thread.
    template <bool IsMaximum, class Function>
    WPK_DEVICE Number reduce(Function f) const
    {
        const Number own = Values::template reduceOwn<IsMaximum>(f);
        if constexpr (threads <= kWarpSize)
        {
            return IsMaximum ? warpMax<threads>(own) : warpSum<threads>(own);
        }
        else
        {
            __shared__ Number scratch[blockScratch(threads)];
            return IsMaximum ? blockMax<threads>(own, scratch) : blockSum<threads>(own, scratch);
        }
    }
};

// Asks for what no kernel writes, of the first runs of a row.
template <class Problem, class Row>
WPK_DEVICE void prefetchOfRow(const Row& row)
{
    WPK_UNROLL
    for (int run = 0; run < minOf(Row::runs, 8); ++run)
    {
        if (row.valid(run) <= 0)
            continue;
        prefetchConstants<Problem::input_constants>(
            typename Problem::Inputs{}, row.inputs, row.leading, row.o1, row.o2, row.column(run));
        if constexpr (!NormTail<Problem, Row>::kBeforeWait)
            prefetchConstants<Problem::operand_constants>(typename Problem::Operands{},
                row.inputs + Problem::Inputs::count, row.leading, row.o1, row.o2, row.column(run));
    }
}

} // namespace detail

template <class Problem, class Schedule>
WPK_DEVICE void normalisation(Inputs<Problem::Inputs::count + Problem::Operands::count> inputs, int n, void* y)
{
    using Y = typename Problem::Y;
    using Row = detail::NormRow<Problem, Schedule>;
    using Place = Domain<Problem::wide, Problem::o1, Problem::o2>;
    constexpr int V = Schedule::vector, threads = Schedule::threads, room = Problem::columns + Problem::rowPadding;
    const int thread = static_cast<int>(threadIdx.x);
    const int64 item = static_cast<int64>(blockIdx.x) * Schedule::rows + thread / threads;
    releaseIfEarly<Schedule>();
    const bool inside = item < Place::items(n);
    const Place at(inside ? item : 0);
    // Lanes of a row that does not exist are behind the end of a row; others of their warp may have one.
    Row row{{}, inputs.at, at.leading, at.at[0], at.at[1], inside ? thread % threads * V : room};
    detail::prefetchOfRow<Problem>(row);
    using Tail = detail::NormTail<Problem, Row>;
    Tail tail;
    if constexpr (Tail::kBeforeWait)
        tail.load(row, inputs.at + Problem::Inputs::count);
    waitIfEarly<Schedule>(); // @previous_awaited
    if (threads >= kWarpSize && !inside)
        return; // a whole warp, or a whole block
    if constexpr (!Tail::kBeforeWait)
        tail.load(row, inputs.at + Problem::Inputs::count);
    row.prepare();
    using Number = typename Row::Number;
    const detail::NormScale<Number> norm = detail::normScale<Problem>(row);
    Row::forRuns(
        [&](int run)
        {
            const int column = row.column(run), valid = row.valid(run);
            if (column >= room)
                return;
            Number values[V] = {};
            if (valid > 0)
            {
                row.values(run, values);
                WPK_UNROLL
                for (int v = 0; v < V; ++v)
                    values[v] = norm.template applied<Problem::kind>(values[v]);
                tail.apply(values, row, inputs.at + Problem::Inputs::count, run);
            }
            storeRowOf<Y, V>(y, Y::offset(at.leading, at.at[0], at.at[1], column), valid,
                room % V == 0 ? V : minOf(V, room - column), values);
        });
}

} // namespace wpk
