// A tensor with borders added or cropped; V neighbouring elements of a row of y to a thread.
//
// Problem: X and Y over (leading, d1, d2, row); extents x1, x2, xRow of x and y1, y2, yRow of y; begins; mode;
// value as fp64 bits; rowPadding: zeros that follow y's rows.
#pragma once

#include <wpk/kernels/barriers/early_launch.cuh>
#include <wpk/kernels/operands/tensor.cuh>
#include <wpk/kernels/places/index.cuh>

namespace wpk
{

enum class PadMode
{
    constant,
    reflect,
    edge,
    wrap
};

namespace detail
{

// The index within [0, extent) that position `i` shows, or -1 for the constant outside.
template <PadMode Mode>
WPK_DEVICE int paddedIndex(int i, int extent)
{
    if (i >= 0 && i < extent)
        return i;
    if constexpr (Mode == PadMode::constant)
    {
        return -1;
    }
    else if constexpr (Mode == PadMode::edge)
    {
        return i < 0 ? 0 : extent - 1;
    }
    else if constexpr (Mode == PadMode::wrap)
    {
        const int rest = i % extent;
        return rest < 0 ? rest + extent : rest;
    }
    else
    {
        const int period = maxOf(2 * (extent - 1), 1);
        const int rest = (i < 0 ? -i : i) % period;
        return minOf(rest, period - rest);
    }
}

} // namespace detail

template <class Problem, class Schedule>
WPK_DEVICE void pad(Inputs<1> inputs, int n, void* y)
{
    using X = typename Problem::X;
    using Y = typename Problem::Y;
    constexpr int V = Schedule::vector;
    constexpr auto mode = Problem::mode;
    using Part = RowPart<Problem::yRow, Problem::rowPadding, V>;
    using Place = Domain<Problem::wide, Problem::y1, Problem::y2, Part::chunks>;
    const int64 item = firstItem<Schedule::threads>();
    startIfEarly<Schedule>();    // @previous_awaited
    if (item >= Place::items(n)) // @idle_threads_end
        return;
    const Place at(item);
    const Part part(at.at[2]);
    const int i1 = detail::paddedIndex<mode>(at.at[0] - Problem::begin1, Problem::x1);
    const int i2 = detail::paddedIndex<mode>(at.at[1] - Problem::begin2, Problem::x2);
    typename Y::Type values[V];
    const bool outside = i1 < 0 || i2 < 0;
    const int start = part.start - Problem::beginRow;
    if (!outside && Problem::beginRow % V == 0 && start >= 0 && start + V <= Problem::xRow)
    {
        typename X::Type row[V];
        loadRow<X, V>(inputs.at[0], X::offset(at.leading, i1, i2, start), V, row);
        WPK_UNROLL
        for (int v = 0; v < V; ++v)
            values[v] = convertElement<typename Y::Type>(row[v]);
    }
    else
    {
        WPK_UNROLL
        for (int v = 0; v < V; ++v)
        {
            const int i = outside ? -1 : detail::paddedIndex<mode>(start + v, Problem::xRow);
            values[v] = fromDouble<typename Y::Type>(asDouble(Problem::value));
            if (i < 0)
                continue;
            const auto* const x = static_cast<const typename X::Type*>(inputs.at[0]);
            values[v] = convertElement<typename Y::Type>(x[X::offset(at.leading, i1, i2, i)]);
        }
    }
    storeRow<Y, V>(y, Y::offset(at.leading, at.at[0], at.at[1], part.start), part.valid, part.room, values);
}

} // namespace wpk
