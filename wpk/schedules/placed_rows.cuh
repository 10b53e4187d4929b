// Rows copied to where two free dimensions say; V neighbouring elements of a row to a thread.
//
// Problem: X and Y over (row, column); columns; rowPadding: zeros that follow y's rows; wide; repeated: y[o, i] = x[i];
// spread: y[o, i] = x[o]; neither: y[o] = x[o, 0].
#pragma once

#include <wpk/kernels/barriers/early_launch.cuh>
#include <wpk/kernels/operands/tensor.cuh>
#include <wpk/kernels/places/index.cuh>

namespace wpk
{

namespace detail
{

// The row of x that a row of y comes from; `inner` rows belong together.
template <class Problem>
WPK_DEVICE int placedRow(int row, int inner)
{
    if constexpr (Problem::repeated)
        return row % inner; // @row_of_one
    else if constexpr (Problem::spread)
        return row / inner; // @row_of_all
    else
        return row * inner; // @first_row
}

} // namespace detail

template <class Problem, class Schedule>
WPK_DEVICE void placedRows(Inputs<1> inputs, int n, int inner, void* y)
{
    using X = typename Problem::X;
    using Y = typename Problem::Y;
    constexpr int V = Schedule::vector;
    using Part = RowPart<Problem::columns, Problem::rowPadding, V>;
    using Place = Domain<Problem::wide, Part::chunks>;
    const int64 item = firstItem<Schedule::threads>();
    startIfEarly<Schedule>();    // @previous_awaited
    if (item >= Place::items(n)) // @idle_threads_end
        return;
    const Place at(item);
    const Part part(at.at[0]);
    typename X::Type values[V] = {};
    if (part.valid > 0)
        loadRow<X, V>(
            inputs.at[0], X::offset(detail::placedRow<Problem>(at.leading, inner), part.start), part.valid, values);
    typename Y::Type moved[V];
    WPK_UNROLL
    for (int v = 0; v < V; ++v)
        moved[v] = convertElement<typename Y::Type>(values[v]);
    storeRow<Y, V>(y, Y::offset(at.leading, part.start), part.valid, part.room, moved);
}

} // namespace wpk
